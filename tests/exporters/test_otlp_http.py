from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from exporters.otlp_http import HttpTransport, _retry_after, parse_headers, rejected_spans
from exporters.sender import Answer


@pytest.fixture
def collector() -> Iterator[Callable[..., tuple[str, list[Any]]]]:
    """Start collectors that answer as told; returns the address and what came."""
    servers = []

    def start(
        status: int = 200, body: bytes = b"", headers: dict[str, str] | None = None, protocol: str = "HTTP/1.1"
    ) -> Any:
        came: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = protocol

            def do_POST(self) -> None:
                came.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}", came

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_bodies_arrive_with_their_headers(collector: Callable[..., Any]) -> None:
    """Path, content type, compression and extra headers are right, over one kept connection."""
    address, came = collector()
    transport = HttpTransport(address, headers={"x-tenant": "a"})
    assert transport.post(b"body", compressed=False) == Answer(200)
    assert transport.post(gzip.compress(b"body"), compressed=True) == Answer(200)
    transport.close()
    (path, headers, body), (_, packed_headers, packed) = came
    assert (path, headers["Content-Type"], headers["x-tenant"], body) == (
        "/v1/traces",
        "application/x-protobuf",
        "a",
        b"body",
    )
    assert (packed_headers["Content-Encoding"], gzip.decompress(packed)) == ("gzip", b"body")


@pytest.mark.parametrize("path", ["", "/", "/otlp", "/otlp/v1/traces", "/v1/traces/"])
def test_the_path_is_completed(collector: Callable[..., Any], path: str) -> None:
    """A base address and a full one both work."""
    address, came = collector()
    transport = HttpTransport(address + path)
    transport.post(b"", compressed=False)
    transport.close()
    assert ("/otlp" if "otlp" in path else "") + "/v1/traces" == came[0][0]


def test_a_refused_connection_is_no_exception() -> None:
    """Nobody listens: status 0, which the sender tries again."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert HttpTransport(f"http://127.0.0.1:{port}").post(b"", compressed=False) == Answer(0)


def test_a_target_that_never_answers_is_given_up() -> None:
    """A hung target costs the time limit, not more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = HttpTransport(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_seconds=0.1)
        assert transport.post(b"x", compressed=False) == Answer(0)


def test_a_target_that_speaks_nonsense_is_no_exception() -> None:
    """A port that is no HTTP server: status 0."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"\x00\x01 hello\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        assert HttpTransport(f"http://127.0.0.1:{server.getsockname()[1]}").post(b"x", compressed=False) == Answer(0)
        thread.join(5)


def test_a_closed_connection_is_opened_again(collector: Callable[..., Any]) -> None:
    """A target that closes after each answer gets every body once."""
    address, came = collector(protocol="HTTP/1.0")
    transport = HttpTransport(address)
    assert [transport.post(b"%d" % n, compressed=False).status for n in range(3)] == [200, 200, 200]
    assert [body for _, _, body in came] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("status", "header", "wait"),
    [
        (429, "7", 7.0),
        (429, " 99999 ", 3600.0),
        (503, "never", 0.0),
        (503, "-5", 0.0),
        (503, "\xb2", 0.0),
        (503, "1\xb2", 0.0),
        (503, "Mon, 01 Jan 0001 00:00:00 -0000", 0.0),
        (503, "Fri, 31 Dec 9999 23:59:59 -2359", 3600.0),
        (503, "Mon, 30 Nov 2026 00:00:00 +99999999999999999999", 0.0),
        (413, None, 0.0),
    ],
)
def test_status_and_retry_after_are_told(
    collector: Callable[..., Any], status: int, header: str | None, wait: float
) -> None:
    """What the target asks for arrives; nonsense asks for nothing."""
    address, _ = collector(status=status, headers={"Retry-After": header} if header else {})
    transport = HttpTransport(address)
    assert transport.post(b"", compressed=False) == Answer(status, wait)
    transport.close()


@given(st.text(st.characters(max_codepoint=255), max_size=60) | st.dates().map(lambda day: day.strftime("%d %b %Y")))
def test_whatever_retry_after_says_is_a_wait(text: str) -> None:
    """No text of a header raises, and no wait is below zero or over an hour."""
    assert 0.0 <= _retry_after(text) <= 3600.0


@given(st.binary(max_size=40))
def test_whatever_an_answer_holds_is_a_count(content: bytes) -> None:
    """No body raises, and no count is below zero."""
    assert rejected_spans(content) >= 0


def test_a_host_that_can_be_none_is_no_exception() -> None:
    """A label that is too long is found out when the name is looked up: status 0, as for a host that is away."""
    assert HttpTransport(f"http://{'a' * 70}.invalid").post(b"x", compressed=False) == Answer(0)


def test_partial_success_is_read_as_the_official_classes_write_it(collector: Callable[..., Any]) -> None:
    """`rejected_spans` of the official response message."""
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = 300
    response.partial_success.error_message = "too old"
    address, _ = collector(body=response.SerializeToString())
    transport = HttpTransport(address)
    assert transport.post(b"", compressed=False) == Answer(200, rejected_spans=300)
    transport.close()


@pytest.mark.parametrize("content", [b"", b"{}", b"\x0a", b"\x0a\xff\xff\xff\xff", b"<html>", b"\x0a\x02\x12\x00"])
def test_other_answers_reject_nothing(content: bytes) -> None:
    """An empty or foreign answer is a full success."""
    assert rejected_spans(content) == 0


def test_headers_are_parsed_and_a_bad_one_is_not_shown() -> None:
    """The message of a bad setting never holds a secret."""
    assert parse_headers(" authorization=Bearer a=b , x=1 ") == {"authorization": "Bearer a=b", "x": "1"}
    with pytest.raises(ValueError, match="name=value") as caught:
        parse_headers("authorization: topsecret")
    assert "topsecret" not in str(caught.value)
    with pytest.raises(ValueError, match="names no host"):
        HttpTransport("http://")
