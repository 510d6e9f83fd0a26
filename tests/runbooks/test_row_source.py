"""Rows of a real recorder, as triage reads them; and a blocked loop seen from rows alone, end to end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.lookup import slowest
from exporters.names import INPUT_BUCKETS, input_bucket
from probes import Recorder, current, define_stage, stage
from probes.asgi import FlightRecorder
from probes.strings import FIELD_BUDGET
from runbooks.engine import triage
from runbooks.explain import explain_traces
from runbooks.prometheus_source import SourceMissingError
from runbooks.row_source import RowSource
from runbooks.rows import OUTCOMES, bucket_of
from runbooks.sources import Sources


def test_length_classes_agree_with_the_names() -> None:
    """The vectorised classes are those of exporters.names.input_bucket, borders included."""
    lengths = [-1, 0, 1, 99, 100, 101, 499, 500, 501, 10_000]

    assert [input_bucket(one) for one in lengths] == bucket_of(np.array(lengths)).tolist()
    assert set(INPUT_BUCKETS) == set(bucket_of(np.array(lengths)).tolist())


def test_outcomes_agree_with_the_names() -> None:
    """The order of outcomes is the row format's."""
    from exporters.labels import OUTCOMES as NAMED

    assert NAMED == OUTCOMES


def fetch_profile(seconds: float) -> None:
    """Block, as a client library without async would."""
    time.sleep(seconds)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer after a millisecond of model; every tenth request blocks the loop when the path says so."""
    await receive()
    with stage("model.forward"):
        await asyncio.sleep(0.001)
    if scope["path"] == "/block":
        fetch_profile(0.25)
    if scope["path"] == "/wait":
        await asyncio.sleep(0.25)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def call(served: Any, path: str) -> None:
    """Send one request through the ASGI app."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(b"x-session-id", b"s" * 16)],
        "http_version": "1.1",
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"text", "more_body": False}

    async def send(_: Any) -> None:
        return None

    await served(scope, receive, send)


async def traffic(recorder: Recorder, path: str) -> None:
    """Run four seconds of health, then four with trouble in one request of ten, until the status page is written."""
    served = FlightRecorder(app, recorder)
    recorder.ready()
    tasks = []
    for number in range(400):
        bad = number >= 200 and number % 10 == 0
        tasks.append(asyncio.ensure_future(call(served, path if bad else "/")))
        await asyncio.sleep(0.02)
    await asyncio.gather(*tasks)
    await asyncio.sleep(1.5)


@pytest.fixture(scope="module", params=["/block", "/wait"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, float]:
    """Record a blocked and a merely waiting service for real; give the path, the folder and the end."""
    folder = tmp_path_factory.mktemp("rings")
    folder.chmod(0o700)
    recorder = Recorder.open(folder, service="test")
    asyncio.run(traffic(recorder, request.param))
    recorder.close()
    return request.param, folder, time.time()


def test_a_blocked_loop_is_named_from_the_recorders_rows_alone(recorded: tuple[str, Path, float]) -> None:
    """Real blocks are named with their frame; a service that waits as long, but awaits, is not blamed."""
    path, folder, until = recorded

    found = triage(Sources.open(folder), at=until)
    steps = {one["step"]: one for one in found["evidence"]}

    assert ("event_loop_blocked" if path == "/block" else None) == found["verdict"]["slug"], found["candidates"]
    assert ["prometheus"] == found["missing_sources"]
    assert (path == "/block") is steps["event_loop.others_move_on"]["holds"]
    if path == "/block":
        assert str(steps["event_loop.blocking_stack"]["value"]).endswith("fetch_profile")


def test_real_rows_carry_what_triage_compares(recorded: tuple[str, Path, float]) -> None:
    """Durations, stages, labels, sessions and the worker's life come through from the file."""
    _, folder, until = recorded
    rows = RowSource(folder).collect(until - 60.0, until)

    assert 400 == len(rows)
    assert {"(unmatched)"} == set(rows.labels["route"].tolist())
    assert 1 == len(set(rows.session.tolist()))
    assert np.nanmedian(rows.stages["model.forward"][1]) >= 0.001
    assert 1 == len(rows.rings)
    assert abs(rows.rings[0].last_sign_s - until) < 10.0
    assert rows.rings[0].status


def test_rows_after_the_time_asked_for_are_not_known(recorded: tuple[str, Path, float]) -> None:
    """Looking back at an earlier moment shows what was known then; later rows are only signs of life."""
    _, folder, until = recorded
    middle = until - 6.0
    rows = RowSource(folder).collect(until - 60.0, middle)

    assert 0 < len(rows) < 400
    assert rows.end_s.max() <= middle
    assert rows.rings[0].last_sign_s > middle


def test_slow_real_requests_are_explained(recorded: tuple[str, Path, float]) -> None:
    """The slowest traces say that the loop was blocked and by what, or where they waited."""
    path, folder, _ = recorded
    reasons = [view.why for view in explain_traces(slowest(folder, 5), folder)]

    # On a busy machine a single block may leave no stack; five of them leave one.
    assert any("the event loop was blocked for" in why for why in reasons) is (path == "/block"), reasons
    assert any("fetch_profile" in why for why in reasons) is (path == "/block"), reasons


def test_a_folder_without_rings_is_missing(tmp_path: Path) -> None:
    """No folder, and an empty one, are told apart and name the mend."""
    with pytest.raises(SourceMissingError, match="set INFERDECK_RING_DIR"):
        RowSource(tmp_path / "nothing").collect(0.0, 1.0)
    with pytest.raises(SourceMissingError, match="recorder attached"):
        RowSource(tmp_path).collect(0.0, 1.0)


def test_a_damaged_ring_is_left_out(tmp_path: Path) -> None:
    """A file of noise with a ring's name is no ring, and no crash."""
    (tmp_path / "0-1.ring").write_bytes(b"\x00\xff" * 5000)

    with pytest.raises(SourceMissingError, match="no ring file"):
        RowSource(tmp_path).collect(0.0, 1.0)


async def labelled(scope: Any, receive: Any, send: Any) -> None:
    """Compute, wait and label with what the path says."""
    await receive()
    record = current()
    assert record is not None
    record.set(place=scope["path"], refused_field="text")
    with stage("runbooks.computing"):
        fetch_profile(0.001)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def test_refused_texts_and_cpu_times_come_from_real_rows(tmp_path: Path) -> None:
    """The label that had too many values is known with its rows; CPU is known of stages that measure it, and small."""
    define_stage("runbooks.computing", cpu=True)
    recorder = Recorder.open(tmp_path, "test")
    served = FlightRecorder(labelled, recorder)

    async def scenario() -> None:
        for number in range(FIELD_BUDGET + 20):
            await call(served, f"/{number}")

    asyncio.run(scenario())
    now = time.time()
    rows = RowSource(tmp_path).collect(now - 60.0, now + 1.0)
    recorder.close()

    assert ["request/place"] == list(rows.refused_texts)
    assert 20 == rows.refused_texts["request/place"].sum()
    assert {"text"} == set(rows.labels["request/refused_field"].tolist())
    # Stages that other tests of this process declared have a column here as well, in which nothing ran.
    assert ["runbooks.computing"] == [name for name, seconds in rows.cpu_s.items() if (seconds > 0).any()]
    assert float(rows.cpu_s["runbooks.computing"].sum()) < float(rows.stages["runbooks.computing"][1].sum())
