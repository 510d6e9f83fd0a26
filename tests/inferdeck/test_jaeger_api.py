"""Jaeger is asked within bounds, whatever it answers, and what it answers is never trusted."""

from __future__ import annotations

import json
import random
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from exporters.trace_view import SpanView, TraceView
from inferdeck.jaeger_api import JaegerApi, JaegerError
from inferdeck.jaeger_look_up import ask_jaeger
from inferdeck.look_up import Query, look_up

SESSION = 'odd "id" * with\nall'
Answer = Callable[[BaseHTTPRequestHandler], None]


def span(name: str, number: int, parent: int = 0, **tags: Any) -> dict[str, Any]:
    """Return a span as Jaeger hands it out."""
    references = [{"refType": "CHILD_OF", "traceID": "ab", "spanID": f"{parent:x}"}] if parent else []
    return {
        "traceID": "ab",
        "spanID": f"{number:x}",
        "operationName": name,
        "references": references,
        "startTime": 1_000_000 + number,
        "duration": 500,
        "tags": [{"key": key, "value": value} for key, value in tags.items()],
        "processID": "p1",
    }


def trace(session: str) -> dict[str, Any]:
    """Return a trace of one request with one stage."""
    spans = [span("POST /x", 1, session_id=session, outcome="ok"), span("model.forward", 2, 1)]
    return {"traceID": "ab", "spans": spans, "processes": {"p1": {"serviceName": "reviews", "tags": []}}}


def say(status: int, body: bytes) -> Answer:
    """Return an answer of fixed content."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def slowly(handler: BaseHTTPRequestHandler) -> None:
    """Answer a byte at a time, each within any time limit of a single read."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Answer 100 MB."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" " * 1_000_000)


@contextmanager
def fake(answer: Answer, asked: list[str] | None = None) -> Iterator[str]:
    """Run a Jaeger that answers its list of services, and each other question with *answer*."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if asked is not None:
                asked.append(self.path)
            try:
                services = say(200, b'{"data": ["jaeger", "reviews"]}')
                (services if self.path == "/api/services" else answer)(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    socketserver.TCPServer.allow_reuse_address = True
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_session_is_asked_for_by_tag_and_service() -> None:
    """The internal search, since v3 ignores the filter; the id goes as it is, and jaeger's own service is left out."""
    asked: list[str] = []
    with fake(say(200, json.dumps({"data": [trace(SESSION)]}).encode()), asked) as url:
        found = JaegerApi(url).session(SESSION, 1.0, 2.0)

    question = parse_qs(urlsplit(asked[1]).query)
    assert ["ab"] == [one["traceID"] for one in found]
    assert {"session_id": SESSION} == json.loads(question["tags"][0])
    assert (["reviews"], ["1000000"], ["2000000"]) == (question["service"], question["start"], question["end"])
    assert 2 == len(asked)


def test_an_unknown_trace_is_no_failure() -> None:
    """Jaeger answers 404 then."""
    with fake(say(404, b'{"errors": [{"code": 404}]}')) as url:
        assert [] == JaegerApi(url).trace("a" * 32)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (say(500, b"oh"), "answered 500"),
        (say(200, b"<html>"), "no JSON"),
        (say(200, b"[" * 100_000), "no JSON"),
        (say(200, b"[1]"), "something else"),
        (say(200, b'{"data": {"a": 1}}'), "something else"),
        (slowly, "within 1 s"),
        (endless, "longer than 16 MiB"),
    ],
)
def test_a_broken_jaeger_is_bounded_and_said(answer: Answer, told: str) -> None:
    """500, no JSON, slow, 100 MB: one line each."""
    with fake(answer) as url, pytest.raises(JaegerError, match=told):
        JaegerApi(url, deadline_seconds=1.0 if answer is slowly else 20.0).trace("a" * 32)


def test_nobody_there_and_no_address_are_said() -> None:
    """A refused connection, and a word that is none."""
    with pytest.raises(JaegerError, match="cannot be asked"):
        JaegerApi("http://127.0.0.1:9").services()
    with pytest.raises(JaegerError, match="no address of a Jaeger"):
        JaegerApi("jaeger:16686").services()


def test_a_jaeger_that_ignores_the_filter_shows_nobody_elses_requests() -> None:
    """As v3 does before 2.19."""
    with fake(say(200, json.dumps({"data": [trace("somebody-else-0001")]}).encode())) as url:
        views, about = ask_jaeger(url, Query(session="mine-0000-0000-0001"), [])

    assert [] == views
    assert (0, "") == (about["found"], about["error"])


def test_a_request_that_only_jaeger_has_is_found(tmp_path: Path) -> None:
    """Its rows are gone; where it was found is said."""
    session = "only-in-jaeger-0001"
    with fake(say(200, json.dumps({"data": [trace(session)]}).encode())) as url:
        payload = look_up(Query(session=session), tmp_path / "rows", jaeger=url)

    assert ["found", ["ring", "jaeger"]] == [payload["result"], payload["sources"]]
    assert ["POST /x", "model.forward"] == [one["name"] for one in payload["traces"][0]["spans"]]
    assert "POST /x" == payload["traces"][0]["spans"][1]["parent"]


def test_a_dead_jaeger_makes_a_miss_incomplete_and_costs_no_answer(tmp_path: Path) -> None:
    """The rows are still asked; "not found" would be a guess."""
    payload = look_up(Query(session="nobody-0000-0000-01"), tmp_path, jaeger="http://127.0.0.1:9")

    assert ["incomplete", ["ring"]] == [payload["result"], payload["sources"]]
    assert "cannot be asked" in payload["jaeger"]["error"]


def slow_trace(number: int, milliseconds: float, **tags: Any) -> dict[str, Any]:
    """Return a trace of one request."""
    root = {**span("POST /x", number, session_id=f"session-{number}", **tags), "traceID": f"{number:x}"}
    root |= {"duration": round(milliseconds * 1000), "startTime": 1_000_000_000 + number}
    return {"traceID": f"{number:x}", "spans": [root], "processes": {"p1": {"serviceName": "reviews", "tags": []}}}


def latest(traces: list[dict[str, Any]]) -> Answer:
    """Answer as Jaeger does: of the traces that are long enough and have the tag, the latest, up to the limit."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked = {key: values[0] for key, values in parse_qs(urlsplit(handler.path).query).items()}
        least = int(asked.get("minDuration", "0us").removesuffix("us"))
        wanted = json.loads(asked.get("tags", "{}"))
        fit = [
            one
            for one in traces
            if any(
                span["duration"] >= least
                and wanted.items() <= {tag["key"]: str(tag["value"]).lower() for tag in span["tags"]}.items()
                for span in one["spans"]
            )
        ]
        say(200, json.dumps({"data": fit[::-1][: int(asked["limit"])]}).encode())(handler)

    return answer


@pytest.mark.parametrize("order", ["slowest first", "any", "fastest first"])
def test_the_slowest_are_found_among_more_than_jaeger_hands_out(tmp_path: Path, order: str) -> None:
    """It gives the latest 200 of 2,000, whatever they took."""
    durations = list(range(2000, 0, -1)) if order == "slowest first" else list(range(1, 2001))
    if order == "any":
        random.Random(1).shuffle(durations)
    traces = [slow_trace(number, duration) for number, duration in enumerate(durations, start=1)]
    with fake(latest(traces)) as url:
        payload = look_up(Query(slow=3), tmp_path / "rows", clock=lambda: 1000.0, jaeger=url)

    assert [2.0, 1.999, 1.998] == [one["duration_s"] for one in payload["traces"]]
    assert (3, True, "") == (payload["jaeger"]["found"], payload["jaeger"]["complete"], payload["jaeger"]["error"])


def test_when_all_are_equally_slow_it_is_said_that_there_may_be_more(tmp_path: Path) -> None:
    """A bound on the questions, and no guess."""
    asked: list[str] = []
    with fake(latest([slow_trace(number, 5.0) for number in range(1, 400)]), asked) as url:
        payload = look_up(Query(slow=3), tmp_path / "rows", clock=lambda: 1000.0, jaeger=url)

    assert (3, False) == (len(payload["traces"]), payload["jaeger"]["complete"])
    assert len(asked) < 15


def row(seconds: float, number: int, outcome: str = "ok", status: str = "ok") -> TraceView:
    """Return a request as the rows have it."""
    root = SpanView("POST /x", "", 0.0, seconds, {}, f"{number:016x}")
    return TraceView(
        f"{number:032x}", "s", "", seconds, status, "", spans=[root], outcome=outcome, start_unix_ns=number
    )


def test_rows_and_jaeger_are_one_list_of_the_slowest() -> None:
    """Each request once; Jaeger is asked for slower ones alone when the rows have enough."""
    asked: list[str] = []
    rows = [row(0.5, 7), row(0.3, 8)]
    traces = [slow_trace(7, 500), slow_trace(9, 400), slow_trace(10, 100)]
    with fake(latest(traces), asked) as url:
        views, about = ask_jaeger(url, Query(slow=2), rows, clock=lambda: 1000.0)

    assert [0.5, 0.4] == [view.duration_s for view in views]
    assert "minDuration=300000us" in asked[1]
    assert 2 == about["found"]


def test_errors_of_both_come_together_newest_first() -> None:
    """A span in error below a request that went well makes it none."""
    fine = slow_trace(3, 1, outcome="ok")
    fine["spans"].append({**span("triton.client", 4, 3, error=True), "traceID": "3"})
    traces = [slow_trace(1, 1, outcome="error", error=True), slow_trace(2, 1, outcome="unfinished", error=True), fine]
    rows = [row(0.1, 5_000_000_000_000, "error", "error"), row(0.1, 9, "refused", "error")]
    with fake(latest(traces)) as url:
        views, about = ask_jaeger(url, Query(errors=True), rows, clock=lambda: 1000.0)

    assert ["error", "never_ended", "error", "refused"] == [view.outcome for view in views]
    assert 5_000_000_000_000 == views[0].start_unix_ns
    assert (2, True) == (about["found"], about["complete"])


def test_all_answers_together_are_bounded() -> None:
    """Each of six is below the bound, and their sum is not."""
    body = json.dumps({"data": [slow_trace(n, n) for n in range(1, 201)], "pad": "x" * 400_000}).encode()
    with fake(say(200, body)) as url, pytest.raises(JaegerError, match="longer than 1 MiB"):
        JaegerApi(url, most_bytes=1 << 20).slow(9, 0.0, 0.0, 1.0)
