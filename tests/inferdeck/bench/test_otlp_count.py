"""Counting spans by walking lengths, judged by the official classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from inferdeck.bench.otlp_count import count_spans

ATTRIBUTES = st.dictionaries(st.text(max_size=20), st.text(max_size=200), max_size=3)
SPANS = st.builds(
    lambda parent, name, attributes, start: Span(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        parent_span_id=parent,
        name=name,
        start_time_unix_nano=start,
        flags=0x101,
        attributes=[KeyValue(key=k, value=AnyValue(string_value=v)) for k, v in attributes.items()],
    ),
    st.sampled_from([b"", b"p" * 8]),
    st.text(max_size=300),
    ATTRIBUTES,
    st.integers(0, 2**64 - 1),
)
BATCHES = st.lists(st.lists(st.lists(SPANS, max_size=4), max_size=3), max_size=3)


def request(batches: list[list[list[Span]]]) -> ExportTraceServiceRequest:
    """Return a request with these spans by resource and scope."""
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="bench"))])
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=resource,
                scope_spans=[ScopeSpans(scope=InstrumentationScope(name="x"), spans=spans) for spans in scopes],
            )
            for scopes in batches
        ]
    )


@given(BATCHES)
def test_spans_are_counted_as_the_official_classes_see_them(batches: list[list[list[Span]]]) -> None:
    """All spans count, and those without a parent count as traces, whatever lies around them."""
    spans = [span for scopes in batches for scope in scopes for span in scope]
    roots = [span for span in spans if not span.parent_span_id]

    assert (len(spans), len(roots)) == count_spans(request(batches).SerializeToString())


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_give_a_count_or_a_clear_error(body: bytes) -> None:
    """What is no message is a ValueError, never another exception or an endless walk."""
    try:
        count_spans(body)
    except ValueError:
        return


def test_a_cut_message_is_refused() -> None:
    """A body that ends in the middle is no message."""
    body = request([[[Span(name="a" * 50)]]]).SerializeToString()

    with pytest.raises(ValueError, match=r"beyond its message|cut off"):
        count_spans(body[:-1])
