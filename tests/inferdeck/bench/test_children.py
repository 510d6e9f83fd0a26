"""The bench's own processes: ports, endings and the sink's counts."""

from __future__ import annotations

import gzip
import http.client
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from inferdeck.bench.children import Child, spawn, wait_for_port
from inferdeck.errors import CannotRun
from inferdeck.http_get import get_json


def test_a_child_that_ends_says_why(tmp_path: Path) -> None:
    """The last line of its log is in the one line that the user sees."""
    code = "import sys; sys.exit('no such module: x')"

    with spawn("broken", ["-c", code], tmp_path, {}) as child, pytest.raises(CannotRun, match="no such module: x"):
        wait_for_port(child)


def test_a_child_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    """Waiting for a port has an end, and the child is stopped."""
    sleep = ["-c", "import time; time.sleep(60)"]

    with spawn("mute", sleep, tmp_path, {}) as child, pytest.raises(CannotRun, match="did not start within"):
        wait_for_port(child, seconds=0.5)

    assert child.process.returncode is not None


def test_settings_of_the_callers_shell_do_not_leak_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured depends on the bench alone."""
    monkeypatch.setenv("INFERDECK_SERVICE_WORKERS", "4")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    code = "import os; print('{\"port\": %d}' % sum(k in os.environ for k in ('INFERDECK_SERVICE_WORKERS', 'OTEL_SDK_DISABLED')))"  # noqa: E501

    with spawn("env", ["-c", code], tmp_path, {}) as child:
        assert 0 == wait_for_port(child)


def post(sink: Child, path: str, body: bytes, headers: dict[str, str] | None = None) -> int:
    """Post a body to the sink and return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", sink.port, timeout=10)
    try:
        connection.request("POST", path, body, headers or {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_sink_counts_by_sender(tmp_path: Path) -> None:
    """Spans are counted for whoever posted them, gzip included; bytes that are no spans are counted apart."""
    spans = [Span(name="a"), Span(name="b", parent_span_id=b"p" * 8), Span(name="c", parent_span_id=b"p" * 8)]
    message = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
    body = message.SerializeToString()

    with spawn("sink", ["-m", "inferdeck.bench.sink"], tmp_path, {}) as sink:
        wait_for_port(sink)
        # larger than one read of a socket, so that a body in pieces is put together
        large = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans * 20_000)])]
        ).SerializeToString()
        statuses = [
            post(sink, "/a/v1/traces", body),
            post(sink, "/a/v1/traces", gzip.compress(body), {"Content-Encoding": "gzip"}),
            post(sink, "/a/v1/traces", b"\xff\xff"),
            post(sink, "/b/v1/traces", large),
        ]
        a, b = get_json(f"{sink.url}/a/count"), get_json(f"{sink.url}/b/count", 30)

    assert [200] * 4 == statuses
    assert (6, 2, 3, 1) == (a["spans"], a["roots"], a["posts"], a["broken"])
    assert (60_000, 20_000, 1, 0) == (b["spans"], b["roots"], b["posts"], b["broken"])
