"""Spans over gRPC to a real server of grpcio, judged by the official generated classes."""

from __future__ import annotations

import builtins
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import QuotaFailure, RetryInfo
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

from exporters.exporter import Exporter
from exporters.otlp_grpc import METHOD, GrpcTransport, retry_delay_seconds
from exporters.otlp_target import GRPC, open_transport
from exporters.sender import Answer, Parcel, Sender
from exporters.serving import CannotStartError
from exporters.settings import ExporterSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.exporters.conftest import Flight

Collector = Callable[..., tuple[str, list[tuple[Any, dict[str, Any]]]]]


class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Knows the one method of the protocol, with the official classes on both sides."""

    def __init__(self, answer: Callable[[Any, Any], Any], came: list[tuple[Any, dict[str, Any]]]) -> None:
        self.answer, self.came = answer, came

    def service(self, details: Any) -> Any:
        """Return how the method is served; None for any other, which is "unimplemented"."""
        if details.method != METHOD:
            return None

        def call(request: Any, context: Any) -> Any:
            self.came.append((request, dict(context.invocation_metadata())))
            return self.answer(request, context)

        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=service.ExportTraceServiceRequest.FromString,
            response_serializer=service.ExportTraceServiceResponse.SerializeToString,
        )


def accept(_request: Any, _context: Any) -> Any:
    """Take all."""
    return service.ExportTraceServiceResponse()


def refuse(code: str, words: str = "no", status: bytes = b"") -> Callable[[Any, Any], Any]:
    """Return an answer that fails with a code, and details of it."""

    def answer(_request: Any, context: Any) -> Any:
        if status:
            context.set_trailing_metadata((("grpc-status-details-bin", status),))
        context.abort(grpc.StatusCode[code], words)

    return answer


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Start collectors that answer as told; returns the address and what came."""
    with contextlib.ExitStack() as stack:

        def start(answer: Callable[[Any, Any], Any] = accept, most_bytes: int = 4 << 20, address: str = "") -> Any:
            came: list[tuple[Any, dict[str, Any]]] = []
            pool = stack.enter_context(ThreadPoolExecutor(2))
            options = [("grpc.max_receive_message_length", most_bytes), ("grpc.so_reuseport", 0)]
            server = grpc.server(pool, handlers=[Handler(answer, came)], options=options)
            port = server.add_insecure_port(address or "127.0.0.1:0")
            server.start()
            stack.callback(lambda: server.stop(None).wait(10))
            return f"http://127.0.0.1:{port}", came

        yield start


def body_of(spans: int, size: int = 1) -> bytes:
    """Return a request that the official classes wrote."""
    request = service.ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for _ in range(spans):
        scope.spans.add(name="x" * size, trace_id=b"t" * 16, span_id=b"s" * 8)
    encoded: bytes = request.SerializeToString()
    return encoded


def post(address: str, body: bytes = b"", **options: Any) -> Answer:
    """Post once."""
    transport = GrpcTransport(address, **options)
    try:
        return transport.post(body, compressed=False)
    finally:
        transport.close()


@pytest.mark.parametrize("compress", [False, True])
def test_bodies_arrive_with_their_headers(collector: Collector, compress: bool) -> None:
    """Read by the official classes; headers are metadata, and gRPC compresses itself."""
    address, came = collector()

    assert Answer(200) == post(address, body_of(3), headers={"X-Tenant": "a"}, compress=compress)

    [(request, metadata)] = came
    assert 3 == len(request.resource_spans[0].scope_spans[0].spans)
    assert "a" == metadata["x-tenant"]


def test_a_partial_success_is_read(collector: Collector) -> None:
    """As over HTTP: how many were refused out of an accepted body."""
    rejected = service.ExportTracePartialSuccess(rejected_spans=2, error_message="too old")
    address, _ = collector(lambda *_: service.ExportTraceServiceResponse(partial_success=rejected))

    assert Answer(200, rejected_spans=2) == post(address, body_of(3))


def status_with(*details: Any) -> bytes:
    """Return a google.rpc.Status with these details."""
    status = Status(code=8, message="wait")
    for detail in details:
        status.details.add().Pack(detail)
    encoded: bytes = status.SerializeToString()
    return encoded


WAIT = status_with(QuotaFailure(), RetryInfo(retry_delay=Duration(seconds=7, nanos=500_000_000)))


@pytest.mark.parametrize(
    ("code", "words", "status", "answer"),
    [
        *((code, "no", b"", Answer(0)) for code in ("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE")),
        *((code, "no", b"", Answer(0)) for code in ("UNAVAILABLE", "DATA_LOSS")),
        ("UNAVAILABLE", "no", WAIT, Answer(0, retry_after_seconds=7.5)),
        ("RESOURCE_EXHAUSTED", "no", WAIT, Answer(429, retry_after_seconds=7.5)),
        ("RESOURCE_EXHAUSTED", "no", b"", Answer(400)),
        ("RESOURCE_EXHAUSTED", "no", status_with(QuotaFailure()), Answer(400)),
        ("RESOURCE_EXHAUSTED", "grpc: received message larger than max (9 vs. 4)", b"", Answer(413)),
        *((code, "no", WAIT, Answer(400)) for code in ("INVALID_ARGUMENT", "UNAUTHENTICATED", "UNIMPLEMENTED")),
        *((code, "no", b"", Answer(400)) for code in ("UNKNOWN", "INTERNAL", "PERMISSION_DENIED", "NOT_FOUND")),
    ],
)
def test_failures_are_read_as_the_specification_says(
    collector: Collector, code: str, words: str, status: bytes, answer: Answer
) -> None:
    """Codes that may be tried again, those that only may with a delay, and those that are final."""
    address, _ = collector(refuse(code, words, status))

    assert answer == post(address, body_of(1))


def test_a_body_over_the_servers_bound_is_told_as_one_that_is_too_large(collector: Collector) -> None:
    """In the words of grpcio itself, so that the sender tries with halves."""
    address, came = collector(most_bytes=1000)

    assert Answer(413) == post(address, body_of(1, size=2000))
    assert [] == came


def test_nobody_there_and_nobody_who_answers_are_no_answer(collector: Collector) -> None:
    """Within the time limit."""
    assert 0 == post("http://127.0.0.1:9").status

    def sleep(_request: Any, context: Any) -> Any:
        while context.is_active():
            time.sleep(0.02)
        return service.ExportTraceServiceResponse()

    address, _ = collector(sleep)
    assert 0 == post(address, timeout_seconds=0.3).status


@pytest.mark.parametrize("endpoint", ["http://", "http://127.0.0.1:4317/v1/traces"])
def test_an_endpoint_that_is_none_for_grpc_is_refused(endpoint: str) -> None:
    """A path has no place in it: most likely it was meant for HTTP."""
    with pytest.raises(ValueError, match="OTLP endpoint"):
        GrpcTransport(endpoint)


@pytest.mark.parametrize("headers", ["a=é", "a-bin=x"])
def test_headers_that_grpc_cannot_send_are_refused_at_the_start(headers: str) -> None:
    """And not at each body."""
    with pytest.raises(ValueError, match="cannot be sent over gRPC"):
        open_transport(GRPC, "http://127.0.0.1:4317", headers=headers)


@given(st.binary(max_size=60))
def test_whatever_details_a_server_sends(status: bytes) -> None:
    """None raises, and no wait is longer than an hour."""
    delay = retry_delay_seconds(status)
    assert delay is None or 0 <= delay <= 3600


@given(st.integers(0, 315_576_000_000), st.integers(0, 999_999_999))
def test_delays_are_those_of_the_official_class(seconds: int, nanos: int) -> None:
    """Up to an hour."""
    told = status_with(RetryInfo(retry_delay=Duration(seconds=seconds, nanos=nanos)))
    assert min(seconds + nanos / 1e9, 3600.0) == pytest.approx(retry_delay_seconds(told))


def test_the_queue_is_bounded_while_nobody_listens_and_drops_are_counted() -> None:
    """As over HTTP, by the same reasons."""
    sender = Sender(
        GrpcTransport("http://127.0.0.1:9", timeout_seconds=1.0), version="1", queue_spans=2, first_pause_seconds=0.05
    )
    for _ in range(4):
        sender.put(Parcel(b"", b"", 1))
    assert 2 == sender.take_counts().value("telemetry_spans_dropped_total", "queue_full")
    sender.start()
    sender.stop(0.3)
    assert 2 == sender.take_counts().value("telemetry_spans_dropped_total", "not_delivered_at_exit")


def test_spans_wait_for_a_server_that_comes_back(collector: Collector) -> None:
    """It says that it cannot now, twice; then it takes them, and they are counted once."""
    answers = iter([refuse("UNAVAILABLE"), refuse("RESOURCE_EXHAUSTED", status=status_with(RetryInfo())), accept])

    def answer(request: Any, context: Any) -> Any:
        return next(answers)(request, context)

    address, came = collector(answer)
    sender = Sender(GrpcTransport(address), version="1", first_pause_seconds=0.05)
    sender.start()
    sender.put(Parcel(b"", b"", 3))
    deadline = time.monotonic() + 30
    while sender.queued and time.monotonic() < deadline:
        time.sleep(0.02)
    sender.stop()
    counts = sender.take_counts()

    assert (3, 3) == (len(came), counts.value("telemetry_spans_sent_total"))
    assert [] == [name for name, value in counts.counters.get("telemetry_spans_dropped_total", {}).items() if value]


def test_the_exporter_sends_by_grpc_what_it_reads(
    collector: Collector, fly: Callable[..., Flight], ring_dir: Path, tmp_path: Path
) -> None:
    """From a row to a span of the official class, counted as sent."""
    address, came = collector()
    flight = fly()
    exporter = Exporter(
        ExporterSettings(
            ring_dir=ring_dir,
            state_dir=tmp_path / "state",
            otlp_endpoint=address,
            otlp_protocol="grpc",
            otlp_gzip=True,
            gpu=False,
        )
    )
    exporter.start()
    flight.row(outcome=2, stages={"model.forward": (1000, 2000)})
    try:
        deadline = time.monotonic() + 30
        while not came and time.monotonic() < deadline:
            exporter.tick()
            time.sleep(0.05)
    finally:
        exporter.stop()

    names = [span.name for span in came[0][0].resource_spans[0].scope_spans[0].spans]
    assert {"POST /v1/sentiment", "model.forward"} == set(names)
    assert 2 == exporter.state.totals.value("telemetry_spans_sent_total")


def test_without_grpcio_the_exporter_says_what_to_install(
    ring_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its start, and not at the first span."""
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("exporters.otlp_grpc"):
            raise ImportError("No module named 'grpc'")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    settings = ExporterSettings(
        ring_dir=ring_dir, state_dir=tmp_path, otlp_endpoint="http://127.0.0.1:4317", otlp_protocol="grpc"
    )
    with pytest.raises(CannotStartError, match=r"pip install 'inferdeck\[otlp-grpc\]'"):
        Exporter(settings)
