"""Why one request took as long as it did, in one plain sentence."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.trace_view import SpanView, TraceView
from probes import Recorder
from probes.reader import RingFile
from runbooks.explain import BLOCKED, WORKER_GONE, explain, explain_traces
from runbooks.pages import load_pages
from runbooks.rows import Blocker, Episode, Rows

ROOT = "POST /v1/sentiment"


def view(start: float, stages: dict[str, float], outside: float = 0.0, **changes: Any) -> TraceView:
    """Return a trace of stages one after the other, with time outside of them."""
    spans, at = [], outside
    for name, seconds in stages.items():
        spans.append(SpanView(name, ROOT, at, seconds))
        at += seconds
    trace = TraceView(
        trace_id="0" * 31 + "1",
        session_id="s",
        started="",
        duration_s=at,
        status="ok",
        last_stage=list(stages)[-1] if stages else "",
        spans=[SpanView(ROOT, "", 0.0, at), *spans],
        outcome="ok",
        input_bucket="short",
        start_unix_ns=int(start * 1e9),
        ring="ring0",
    )
    return replace(trace, **changes)


@pytest.fixture
def rows(world: Callable[..., Any]) -> Rows:
    """Return healthy rows: about 3 ms each, 2 ms of it in the model."""
    found: Rows = world().rows()
    return found


def test_a_slow_stage_is_told_against_its_usual_time(rows: Rows) -> None:
    """The stage with the extra time is named, with how many times its usual it took."""
    found = explain(view(rows.start_s[5], {"network.receive": 0.0005, "model.forward": 0.4}), rows)

    assert "model.forward" == found.slow_stage
    assert found.why.startswith("0.400 s in model.forward, ")
    assert "times the usual 0.00" in found.why


def test_the_longest_stage_is_not_the_slow_one_when_it_is_always_long(rows: Rows) -> None:
    """What counts is the extra time over the usual, not the time itself."""
    usual = float(np.median(rows.stages["model.forward"][1]))
    slow = replace(
        rows,
        duration_s=rows.duration_s + 0.3,
        stages={
            **rows.stages,
            "model.forward": (rows.stages["model.forward"][0], rows.stages["model.forward"][1] + 0.3),
        },
    )

    found = explain(view(rows.start_s[5], {"model.forward": 0.3 + usual, "network.send": 0.28}), slow)

    assert "network.send" == found.slow_stage


def test_a_usual_request_is_called_usual(rows: Rows) -> None:
    """Nothing is explained where nothing is slow."""
    found = explain(view(rows.start_s[5], {"model.forward": 0.002}), rows)

    assert (True, "") == (found.usual, found.cause)
    assert found.why.startswith("usual: ")


def blocked(rows: Rows, start: float, seconds: float) -> Rows:
    """Return the rows with one blocked time of their only worker."""
    episode = Episode(start, seconds, ("/srv/app/profile.py:12 fetch_profile", "/srv/app/main.py:4 handle"))
    return replace(rows, rings=(replace(rows.rings[0], episodes=(episode,)),))


def test_a_blocked_event_loop_is_named_with_the_frame_that_blocked_it(rows: Rows) -> None:
    """Half of the extra time in a blocked time of the same worker is the reason, whichever stage waited."""
    start = float(rows.start_s[5])
    found = explain(view(start, {"scheduler.dispatch": 0.2}), blocked(rows, start + 0.01, 0.18))

    assert "the event loop was blocked for 0.180 s of it by app/profile.py:12 fetch_profile" == found.why
    assert ("scheduler.dispatch", "event_loop_blocked", False) == (found.slow_stage, found.cause, found.usual)


def test_causes_are_slugs_of_pages(rows: Rows) -> None:
    """What an explanation names can be read on about."""
    assert {BLOCKED, WORKER_GONE} <= set(load_pages())


def test_a_blocked_time_of_another_worker_or_moment_is_no_reason(rows: Rows) -> None:
    """Only the worker's own blocked time, and only while the request ran."""
    start = float(rows.start_s[5])
    earlier = blocked(rows, start - 1.0, 0.5)
    elsewhere = view(start, {"scheduler.dispatch": 0.2}, ring="ring9")

    assert "blocked" not in explain(view(start, {"scheduler.dispatch": 0.2}), earlier).why
    assert "blocked" not in explain(elsewhere, blocked(rows, start, 0.2)).why


def test_time_outside_of_all_stages_is_a_place_too(rows: Rows) -> None:
    """Middleware and waiting have no stage; the time is still told."""
    found = explain(view(rows.start_s[5], {"model.forward": 0.002}, outside=0.3), rows)

    assert "(outside stages)" == found.slow_stage
    assert "outside of all stages" in found.why


def test_waiting_in_a_queue_is_told(rows: Rows) -> None:
    """A stage that says how long it queued gives the reason."""
    trace = view(rows.start_s[5], {"scheduler.dispatch": 0.3})
    trace.spans[1] = replace(trace.spans[1], attributes={"queue_wait_ns": 280_000_000})

    assert "it waited 0.280 s in the queue of scheduler.dispatch" == explain(trace, rows).why


def test_requests_that_never_ended_say_where_they_were(rows: Rows) -> None:
    """A dead worker's request and one in flight are told apart."""
    dead = view(rows.start_s[5], {}, status="unfinished", outcome="never_ended", last_stage="model.forward")
    waiting = replace(dead, outcome="in_flight", last_stage="")

    assert "it never ended: its worker is gone; it was in model.forward" == explain(dead, rows).why
    assert "it has not ended yet; it is before its first stage" == explain(waiting, rows).why
    assert ("model.forward", "service_down") == (explain(dead, rows).slow_stage, explain(dead, rows).cause)


def test_how_it_ended_comes_before_why_it_took_so_long(rows: Rows) -> None:
    """An error names its type first."""
    trace = view(rows.start_s[5], {"model.forward": 0.002}, status="error", outcome="error")
    trace.spans[0] = replace(trace.spans[0], attributes={"error.type": "ValueError"})

    assert explain(trace, rows).why.startswith("error (ValueError); usual: ")


def test_without_other_requests_nothing_is_called_usual() -> None:
    """The place with the most time is told, and that nothing could be compared."""
    found = explain(view(1000.0, {"model.forward": 0.4}), None)

    assert "model.forward" == found.slow_stage
    assert "too few other requests" in found.why


def test_a_folder_that_cannot_be_read_still_explains(tmp_path: Path) -> None:
    """No rows around: the traces come back, one for one."""
    found = explain_traces([view(1000.0, {"model.forward": 0.4})] * 2, tmp_path / "nothing")

    assert ["model.forward"] * 2 == [one.slow_stage for one in found]
    assert [] == explain_traces([], tmp_path)


def test_a_trace_older_than_the_kept_blocked_times_is_told_their_sums(rows: Rows) -> None:
    """The stage alone would point at the wrong place; what cannot be proved of one request is no cause."""
    start = float(rows.start_s[5])
    later = blocked(rows, start + 300.0, 0.2).rings[0]
    blocker = Blocker(later.episodes[0], 125, 15.1, start - 5.0, start + 301.0)
    slow = view(start, {"scheduler.dispatch": 0.2})
    known = replace(rows, rings=(replace(later, blockers=(blocker,)),))
    over = replace(rows, rings=(replace(later, blockers=(replace(blocker, last_s=start - 1.0),)),))

    found = explain(slow, known)
    assert "the loop was blocked 125 times, 15.100 s in all" in found.why
    assert found.why.endswith("by app/profile.py:12 fetch_profile")
    assert "" == found.cause
    assert "blocked" not in explain(slow, over).why


def of_a_batch(start: float, stages: dict[str, float], **attributes: Any) -> TraceView:
    """Return a request that was padded, of batch 7."""
    trace = view(start, stages)
    trace.spans[0] = replace(trace.spans[0], attributes={"batch_id": 7})
    told = {"seq_len": 512, "padding_ratio": 0.97, "widest": False, **attributes}
    return replace(
        trace,
        spans=[replace(one, attributes=told) if one.name == "sentiment.tokenizer" else one for one in trace.spans],
    )


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, str, str]:
    """Rings in which batch 7 was padded for its second request: folder, ring's id, that request's trace id."""
    recorder = Recorder.open(tmp_path / "rings", "test")
    intake = recorder.start()
    scope = {"type": "http", "method": "POST", "headers": []}
    traces = []
    for number, widest in ((7, False), (7, True), (8, True)):
        record = intake.begin(scope)
        with record.stage("sentiment.tokenizer", widest=widest, seq_len=512):
            record.set(batch_id=number)
        traces.append(record.trace_id)
        intake.finish(record, scope, 200, False)
    assert recorder.path is not None
    with RingFile(recorder.path) as ring:
        ring_id = ring.header.ring_id
    recorder.close()
    return tmp_path / "rings", ring_id, traces[1]


@pytest.mark.parametrize("slow", ["sentiment.tokenizer", "model.forward"])
def test_padding_names_the_request_of_the_batch_that_caused_it(folder: tuple[Path, str, str], slow: str) -> None:
    """The one that says of itself that it was the widest, of the same worker and batch, and no other."""
    rings, ring_id, widest = folder
    stages = {"sentiment.tokenizer": 0.001, "model.forward": 0.001} | {slow: 0.212}
    now = time.time()
    padded = replace(of_a_batch(now, stages), ring=ring_id)

    [found, elsewhere] = explain_traces([padded, replace(padded, ring="other")], rings)

    assert found.why.startswith(f"0.212 s in {slow}")
    assert found.why.endswith(f": padding to 512 tokens because of request {widest} in the same batch")
    assert elsewhere.why.endswith(": padding to 512 tokens because of a request in the same batch whose row is gone")


@pytest.mark.parametrize(
    ("stages", "attributes"),
    [
        ({"sentiment.tokenizer": 0.3}, {"widest": True, "padding_ratio": 0.0}),
        ({"sentiment.tokenizer": 0.3}, {"padding_ratio": 0.3}),
        ({"sentiment.tokenizer": 0.001, "network.send": 0.3}, {}),
        ({"sentiment.tokenizer": 0.3}, {"padding_ratio": "nonsense"}),
    ],
)
def test_padding_is_not_blamed_for_what_it_did_not_do(
    folder: tuple[Path, str, str], stages: dict[str, float], attributes: dict[str, Any]
) -> None:
    """The widest itself, a tensor that is mostly text, and a stage that knows no tensor."""
    rings, ring_id, _ = folder

    [found] = explain_traces([replace(of_a_batch(time.time(), stages, **attributes), ring=ring_id)], rings)

    assert "padding" not in found.why
