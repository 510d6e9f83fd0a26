from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from exporters.endpoints import EndpointError, Gathered, ask_endpoints, parse_endpoints
from exporters.trace_view import SpanView, TraceView

Serve = Callable[..., str]
ABSENT = {"sources": ["ring"], "result": "not_found", "kept_since": None, "unreadable": [], "traces": []}


def trace(number: int, start: int = 0, duration_s: float = 0.1, **values: Any) -> dict[str, Any]:
    """A request in the form of the API."""
    root = SpanView("POST /v1/sentiment", "", 0.0, duration_s, {"outcome": "ok"}, f"{number:016x}")
    known: dict[str, Any] = {"status": "ok", "last_stage": "", "ring": "a", "outcome": "ok", **values}
    view = TraceView(f"{number:032x}", "s", "", duration_s, start_unix_ns=start, spans=[root], **known)
    return view.to_dict()


def holding(*traces: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """An exporter's answer with these requests."""
    return ABSENT | {"result": "found", "traces": list(traces)} | keys


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start fake exporters: `serve(body, status=200, trickle=False)` returns the address; what came is in `.seen`."""
    servers: list[ThreadingHTTPServer] = []

    def begin(body: object, status: int = 200, trickle: bool = False, seen: list[Any] | None = None) -> str:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if seen is not None:
                    seen.append((self.path, self.headers.get("authorization")))
                self.send_response(status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                try:
                    for at in range(0, len(raw), 1 if trickle else len(raw) or 1):
                        self.wfile.write(raw[at : at + (1 if trickle else len(raw))])
                        if trickle:
                            time.sleep(0.05)
                except OSError:
                    return

            def log_message(self, *_args: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def dead() -> str:
    """The address of nobody."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def ask(*endpoints: str, query: dict[str, str] | None = None, **options: Any) -> Gathered:
    """Ask for a session."""
    return ask_endpoints(endpoints, query or {"session_id": "s"}, **({"deadline_seconds": 3.0} | options))


def test_answers_are_merged_by_time_each_request_once(serve: Serve) -> None:
    """Two exporters of one folder have the same rows; one may have seen a request end that the other has not."""
    unfinished = trace(2, 20, status="unfinished", outcome="in_flight")
    first = serve(holding(trace(1, 10), unfinished, trace(5, 50)))
    second = serve(holding(trace(2, 20), trace(3, 15), trace(5, 50)))
    found = ask(first, second)
    assert [1, 3, 2, 5] == [int(view.trace_id, 16) for view in found.traces]
    assert {"ok"} == {view.status for view in found.traces}
    assert {"asked": 2, "answered": 2, "failed": []} == found.about()["endpoints"]
    assert trace(1, 10) == found.traces[0].to_dict()


def test_dead_slow_and_broken_ones_cost_themselves(serve: Serve, dead: str) -> None:
    """The answer comes within the deadline, with what the good one has, and names each of the others and why."""
    good = serve(holding(trace(1)))
    slow, broken = serve(ABSENT, trickle=True), serve(ABSENT, status=500)
    nonsense, text, locked = serve([1, 2]), serve(b"<html>"), serve(ABSENT, status=401)
    strange = serve(holding({"trace_id": "x"}))
    began = time.monotonic()
    found = ask(good, slow, broken, nonsense, text, locked, strange, dead, deadline_seconds=1.0)
    assert time.monotonic() - began < 30
    assert [1] == [int(view.trace_id, 16) for view in found.traces]
    assert ("found", 8, 1) == (found.result, found.asked, found.answered)
    assert {
        slow: "no answer in time",
        broken: "answered with status 500",
        nonsense: "not the answer of an exporter",
        text: "not the answer of an exporter",
        strange: "not the answer of an exporter",
        locked: "a token is needed, or another one: set INFERDECK_EXPORTER_API_TOKEN",
        dead: "cannot be reached: ConnectError",
    } == found.failed


def test_not_found_needs_everybody_s_answer(serve: Serve, dead: str) -> None:
    """19 of 20 that have nothing prove nothing about the twentieth."""
    nothing, older = serve(ABSENT), serve(ABSENT | {"result": "older_than_retention", "kept_since": "2026-01-02T"})
    assert "not_found" == ask(nothing).result
    assert "incomplete" == ask(nothing, dead).result
    both = ask(nothing, older)
    assert ("older_than_retention", "2026-01-02T") == (both.result, both.kept_since)


def test_what_they_looked_at_is_told_together(serve: Serve) -> None:
    """Sources, and unreadable segments with the exporter that has them."""
    first = serve(holding(sources=["ring", "archive"], unreadable=[{"segment": "x", "reason": "cut"}]))
    about = ask(first, serve(ABSENT)).about()
    assert ["ring", "archive"] == about["sources"]
    assert [{"endpoint": first, "segment": "x", "reason": "cut"}] == about["unreadable"]


def test_the_slowest_of_all_and_the_errors_of_all(serve: Serve) -> None:
    """In the order that one exporter gives, and no more than were asked for."""
    first = serve(holding(trace(1, 1, 0.5), trace(2, 2, 0.1, outcome="refused")))
    second = serve(holding(trace(3, 3, 0.9, outcome="error"), trace(4, 4, 0.2, outcome="error")))
    slow = ask(first, second, query={"slow": "2"}).traces
    assert [3, 1] == [int(view.trace_id, 16) for view in slow]
    wrong = ask(first, second, query={"errors": "1"}).traces
    assert [4, 3, 1, 2] == [int(view.trace_id, 16) for view in wrong]


def test_question_and_token_reach_each_exporter(serve: Serve) -> None:
    """As the API wants them; redirects are not followed, for they would take the token elsewhere."""
    seen: list[Any] = []
    first, second = serve(ABSENT, seen=seen), serve(ABSENT, seen=seen, status=302)
    found = ask(first, second, query={"session_id": "a&b", "since": "2h"}, token="t" * 8)
    assert [("/api/traces?session_id=a%26b&since=2h", "Bearer tttttttt")] * 2 == seen
    assert {second: "answered with status 302"} == found.failed


def test_a_name_stands_for_all_its_addresses(serve: Serve) -> None:
    """As a headless service's does; each address is an exporter of its own."""
    address = serve(holding(trace(1)))
    port = address.rpartition(":")[2]
    found = ask(f"dns://exporter.example:{port}", address, resolve=lambda _name, _port: ["127.0.0.1", "127.0.0.1"])
    assert (1, 1) == (found.asked, found.answered)
    asked: list[tuple[str, int]] = []

    def two(name: str, number: int) -> list[str]:
        asked.append((name, number))
        return ["127.0.0.1", "::1"]

    found = ask(f"dns://exporter.example:{port}", resolve=two)
    assert [("exporter.example", int(port))] == asked
    assert (2, 1, [f"http://[::1]:{port}"]) == (found.asked, found.answered, list(found.failed))
    assert 1 == len(found.traces)


def test_a_name_that_is_not_resolved_has_not_answered() -> None:
    """Whether the resolver says so or hangs."""

    def unknown(_name: str, _port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    hang = threading.Event()

    def hangs(_name: str, _port: int) -> list[str]:
        hang.wait(20)
        return []

    for resolve in (unknown, hangs):
        found = ask("dns://exporter.example:9464", resolve=resolve, deadline_seconds=0.2)
        assert ({"dns://exporter.example:9464": "the name was not resolved"}, 1) == (found.failed, found.asked)
        assert "incomplete" == found.result
    hang.set()


def test_the_system_s_resolver_is_asked(serve: Serve) -> None:
    """With localhost, which every machine knows."""
    port = serve(holding(trace(1))).rpartition(":")[2]
    assert 1 <= ask(f"dns://localhost:{port}").answered


def test_too_much_is_refused(serve: Serve) -> None:
    """All answers together are bounded: an exporter that sends without end must not take the asker's memory."""
    big = serve(holding(trace(1)) | {"filler": "x" * 5000})
    assert {big: "answered too much"} == ask(big, most_bytes=1000).failed


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "a:9464", "ftp://a:1", "http://", "http://a:x", "dns://", "http://u:secret@a:1", "http://a:1?x=1"),
        ",".join(f"http://h{number}:1" for number in range(257)),
    ],
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    """With how one is written; a password in it is not repeated."""
    with pytest.raises(EndpointError, match=r"write http://host:9464|name 1 to 256") as caught:
        parse_endpoints(text)
    assert "secret" not in str(caught.value)


def test_endpoints_are_a_list_each_once() -> None:
    """Spaces and a last slash do not matter."""
    assert ["http://a:9464", "dns://b:1"] == parse_endpoints(" http://a:9464/, dns://b:1,,http://a:9464")
