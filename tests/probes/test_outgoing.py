"""The context of a request goes along, in W3C's words and in Kafka's, and comes back the same; nothing raises."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.baggage import get_all
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from probes import Recorder, RecorderSettings
from probes.outgoing import Context, from_headers, kafka_headers, trace_headers
from probes.span_ids import stage_salt, stage_span_id

SESSION = "session-0123456789ab"


@pytest.fixture
def record(tmp_path: Path) -> Any:
    """Begin a request of a real recorder and return its row."""
    recorder = Recorder.open(tmp_path / "rows", "test", settings=RecorderSettings(sensors=False))
    scope = {"type": "http", "method": "POST", "route": SimpleNamespace(path="/x")}
    begun = recorder.begin(scope | {"headers": ((b"x-session-id", SESSION.encode()),)})
    assert begun is not None
    yield begun[1]
    recorder.close()


def test_opentelemetry_reads_what_is_handed_on(record: Any) -> None:
    """The official propagators are the oracle; the parent is the span that the exporter sends for the stage."""
    headers = trace_headers(record, "triton.client", "vendor=a:1")
    span = get_current_span(TraceContextTextMapPropagator().extract(headers)).get_span_context()
    root = from_headers([("traceparent", trace_headers(record)["traceparent"].encode())]).parent_span_id

    assert (record.trace_id, True) == (f"{span.trace_id:032x}", span.trace_flags.sampled)
    assert stage_span_id(root, stage_salt("triton.client")) == span.span_id
    assert "a:1" == span.trace_state["vendor"]
    assert {"session.id": SESSION} == get_all(W3CBaggagePropagator().extract(headers))


def test_a_kafka_message_carries_the_request_and_its_session(record: Any) -> None:
    """What a consumer reads is the producer's stage, and the session in a header of its own."""
    headers = kafka_headers(record, "publish")

    assert SESSION.encode() == dict(headers)["session_id"]
    found = from_headers([*headers, ("null", None)])
    assert (int(record.trace_id, 16), True, SESSION) == (found.trace_id, found.sampled, found.session)


def test_without_a_request_nothing_is_handed_on() -> None:
    """Nor is a tracestate that could break a header."""
    assert {} == trace_headers(None)
    assert [] == kafka_headers(None)


@pytest.mark.parametrize("state", ["", "a=1\r\nx: y", "é=1", "a" * 513])
def test_a_tracestate_that_is_none_is_left_out(state: str, record: Any) -> None:
    """A line break in it would be a header of a stranger's."""
    assert "tracestate" not in trace_headers(record, tracestate=state)


@pytest.mark.parametrize(
    ("headers", "session"),
    [
        ([("baggage", b"session.id=abcdefghijklmnop")], "abcdefghijklmnop"),
        ([("Baggage", b" a=b , session.id = abcdefghijklmnop;p=1")], "abcdefghijklmnop"),
        ([(b"baggage", b"session.id=abcdefghijklmn%6Fp")], "abcdefghijklmnop"),
        ([("baggage", b"session.id=abcdefghijklmnop"), ("X-Session-Id", b"ABCDEFGHIJKLMNOP")], "ABCDEFGHIJKLMNOP"),
        ([("session_id", b"short"), ("baggage", b"session.id=abcdefghijklmnop")], "abcdefghijklmnop"),
        ([("baggage", b"session.id=abcdefghijklmno%0A")], ""),
        ([("baggage", b"session.id=" + b"a" * 9000)], ""),
        ([("baggage", b"x" * 8180 + b",session.id=abcdefghijklmnop")], ""),
    ],
)
def test_the_session_comes_by_baggage_when_there_is_no_header(headers: Any, session: str) -> None:
    """A header of its own wins; what is no session is none."""
    assert Context(session=session) == from_headers(headers)


@given(st.lists(st.tuples(st.sampled_from(["traceparent", "baggage", "session_id", "x"]), st.none() | st.binary())))
def test_no_header_raises(headers: list[tuple[str, bytes | None]]) -> None:
    """They are strangers' bytes."""
    from_headers(headers)
