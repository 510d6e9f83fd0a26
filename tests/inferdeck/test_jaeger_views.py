"""Jaeger's traces become requests, and lie beside those of the rows without doubling them."""

from __future__ import annotations

from typing import Any

from exporters.trace_view import SpanView, TraceView
from inferdeck.jaeger_views import MOST_REQUESTS, merged, views_of
from tests.inferdeck.test_jaeger_api import span, trace

TRACE = "ab".zfill(32)


def row(span_id: str = "1".zfill(16), start: int = 5) -> TraceView:
    """Return a request as the rows have it."""
    root = SpanView("POST /x", "", 0.0, 0.5, {}, span_id)
    return TraceView(TRACE, "s", "", 0.5, "ok", "", spans=[root], start_unix_ns=start)


def test_a_request_reads_like_one_of_the_rows() -> None:
    """Ids in full width, outcome, service, and times after the request's start."""
    [view] = views_of([trace("session-0000-0001")])

    assert (TRACE, "session-0000-0001", "ok", "ok", "reviews") == (
        view.trace_id,
        view.session_id,
        view.status,
        view.outcome,
        view.service,
    )
    assert ["1".zfill(16), "2".zfill(16)] == [one.span_id for one in view.spans]
    assert 1e-6 == view.spans[1].start_s
    assert "model.forward" == view.last_stage


def test_a_request_that_never_ended_says_its_last_stage() -> None:
    """As the exporter sends what a dead worker left."""
    raw = trace("s")
    raw["spans"] = [span("POST", 1, session_id="s", outcome="unfinished", last_stage="sentiment.tokenizer")]

    [view] = views_of([raw])

    assert ("unfinished", "never_ended", "sentiment.tokenizer") == (view.status, view.outcome, view.last_stage)


def test_damaged_spans_are_left_out() -> None:
    """What is shown is data of other programs."""
    raw: dict[str, Any] = trace("s")
    raw["spans"] += [None, {}, {**span("x", 3, 1), "spanID": "../.."}, {**span("x", 4, 1), "startTime": "soon"}]

    assert 2 == len(views_of([raw])[0].spans)
    assert [] == views_of([{}, {"spans": 3}, {"spans": [7]}])


def test_the_rows_come_first_and_spans_that_only_jaeger_has_are_added() -> None:
    """One request, known to both: Triton's spans came by Jaeger alone."""
    raw = trace("s")
    raw["processes"]["p2"] = {"serviceName": "triton", "tags": []}
    raw["spans"].append({**span("InferRequest", 3, 2), "processID": "p2"})

    [together] = merged([row()], views_of([raw]))

    assert ["POST /x", "model.forward", "InferRequest"] == [one.name for one in together.spans]
    assert 0.5 == together.spans[0].duration_s
    assert "triton" == together.spans[2].attributes["service.name"]
    assert "model.forward" == together.spans[2].parent


def test_what_only_one_of_them_has_stays() -> None:
    """Two requests of one trace are two."""
    other = row("9".zfill(16))

    assert ["9".zfill(16), "1".zfill(16)] == [one.spans[0].span_id for one in merged([other], views_of([trace("s")]))]
    assert [other] == merged([other], [])


def test_times_that_are_none_cost_their_span() -> None:
    """Python's JSON knows infinity, and integers without bound."""
    raw: dict[str, Any] = trace("s")
    for number, (key, value) in enumerate(
        [
            *(("startTime", float("inf")), ("startTime", float("nan")), ("duration", float("-inf"))),
            *(("startTime", 10**400), ("duration", 1e300), ("duration", "5"), ("startTime", None)),
        ],
        start=3,
    ):
        raw["spans"].append({**span("x", number, 1), key: value})

    [view] = views_of([raw])

    assert ["POST /x", "model.forward"] == [one.name for one in view.spans]
    assert views_of([{**raw, "spans": [{**span("x", 1, session_id="s"), "startTime": float("inf")}]}]) == []


def test_a_deep_trace_of_many_requests_is_read_in_order_and_within_bounds() -> None:
    """Each span a request below the one before, one that lies below itself, a child that starts before its parent."""
    raw: dict[str, Any] = trace("s")
    raw["spans"] = [span(f"r{number}", number, number - 1, session_id="s") for number in range(1, 2001)]
    views = views_of([raw])

    assert MOST_REQUESTS == len(views)
    assert [f"r{number}" for number in range(1, 2001)] == [one.name for one in views[0].spans]

    raw["spans"] = [span("a", 1, 2), span("b", 2, 1)]
    assert [] == views_of([raw])
    raw["spans"] = [span("root", 1, session_id="s"), {**span("late", 2, 1), "startTime": 5}, span("child", 3, 2)]
    assert ["root", "late", "child"] == [one.name for one in views_of([raw])[0].spans]
