from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from exporters.otlp import SpanWriter, export_request, open_span, resource_bytes
from exporters.row_plan import RowPlan
from exporters.rows import open_requests
from exporters.span_tap import resource_attributes
from exporters.trace_view import view_row
from probes.plan import StageSpec
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

VALUES = st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)


def official(flight: Flight) -> ExportTraceServiceRequest:
    """All rows of a flight as the official classes decode them."""
    with RingFile(flight.path) as ring:
        rows = ring.read(0).rows
        writer = SpanWriter(RowPlan(rows.dtype, ring.header.stages))
        bodies = [writer.encode(row, ring.strings()) for row in rows.tolist()]
        raw = export_request(
            {resource_bytes(resource_attributes(ring.header, "1.2.3")): [body for body, _ in bodies]}, "1.2.3"
        )
    request = ExportTraceServiceRequest()
    request.ParseFromString(raw)
    spans = request.resource_spans[0].scope_spans[0].spans
    assert sum(count for _, count in bodies) == len(spans)
    # Nothing may be left that the official classes do not know.
    for message in (request, request.resource_spans[0], request.resource_spans[0].scope_spans[0], *spans):
        assert len(UnknownFieldSet(message)) == 0
    return request


def plain(value: AnyValue) -> Any:
    """The value of an attribute."""
    return getattr(value, value.WhichOneof("value") or "string_value")


def attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span or resource."""
    found = {item.key: plain(item.value) for item in span.attributes}
    assert len(found) == len(span.attributes), "no key twice"
    return found


def test_a_request_becomes_a_tree_of_spans(fly: Callable[..., Flight]) -> None:
    """Ids, parents, kinds, times, attributes and resource are what OpenTelemetry expects."""
    flight = fly()
    flight.row(
        parent_span_id=77,
        stages={
            "scheduler.dispatch": (1_000, 4_000_000),
            "sentiment.tokenizer": (2_000, 10_000),
            "model.forward": (20_000, 3_000_000),
        },
        columns={
            "sentiment.tokenizer/padding_ratio": 0.25,
            "sentiment.tokenizer/fast": 1,
            "sentiment.tokenizer/cpu_ns": 9_000,
        },
    )
    request = official(flight)
    spans = {span.name: span for span in request.resource_spans[0].scope_spans[0].spans}
    root, dispatch = spans["POST /v1/sentiment"], spans["scheduler.dispatch"]
    began = 1_700_000_000_000_000_000
    assert {span.trace_id.hex() for span in spans.values()} == {"000000000000abcd0100000000001234"}
    assert (root.kind, dispatch.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_INTERNAL)
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (began, began + 5_000_000)
    assert (dispatch.start_time_unix_nano, dispatch.end_time_unix_nano) == (began + 1_000, began + 4_001_000)
    assert int.from_bytes(root.parent_span_id, "big") == 77
    assert root.flags & 0x300 == 0x300, "the parent is known to be remote"
    assert root.span_id == dispatch.parent_span_id
    assert dispatch.span_id == spans["model.forward"].parent_span_id == spans["sentiment.tokenizer"].parent_span_id
    assert len({span.span_id for span in spans.values()}) == 4
    assert attributes(root) == {
        "session.id": "session-0123456789ab",
        "session_id": "session-0123456789ab",
        "outcome": "ok",
        "http.request.method": "POST",
        "http.route": "/v1/sentiment",
        "http.response.status_code": 200,
        "input_length": 40,
        "tokens": 9,
        "confidence": 0.9,
        "label": "positive",
        "model_version": "v1",
    }
    assert attributes(spans["sentiment.tokenizer"]) == {
        "session.id": "session-0123456789ab",
        "cpu_seconds": 9e-6,
        "padding_ratio": 0.25,
        "fast": True,
    }
    resource = attributes(request.resource_spans[0].resource)
    assert (resource["service.name"], resource["host.name"], resource["service.version"]) == (
        "sentiment",
        "host-1",
        "b1",
    )
    assert {"service.instance.id", "process.pid", "telemetry.sdk.name"} <= set(resource)
    assert request.resource_spans[0].scope_spans[0].scope.name == "inferdeck"


def test_a_stage_whose_parent_did_not_run_hangs_under_the_request(fly: Callable[..., Flight]) -> None:
    """A tree never has a parent that is not there."""
    flight = fly()
    flight.row(stages={"model.forward": (5, 6)})
    spans = official(flight).resource_spans[0].scope_spans[0].spans
    assert spans[0].span_id == spans[1].parent_span_id
    assert spans[0].parent_span_id == b""


@pytest.mark.parametrize(
    ("values", "code", "error_type"),
    [
        ({"outcome": 2, "http_status": 500, "error_type": "ValueError"}, Status.STATUS_CODE_ERROR, "ValueError"),
        ({"outcome": 2, "http_status": 503}, Status.STATUS_CODE_ERROR, "503"),
        ({"outcome": 1, "http_status": 422, "reason": "too_long"}, Status.STATUS_CODE_UNSET, None),
        ({"outcome": 3}, Status.STATUS_CODE_UNSET, None),
    ],
)
def test_only_the_service_s_faults_are_errors(
    fly: Callable[..., Flight], values: dict[str, Any], code: int, error_type: str | None
) -> None:
    """A 4xx is the client's: semantic conventions leave a server span's status unset for it."""
    flight = fly()
    flight.row(**values)
    root = official(flight).resource_spans[0].scope_spans[0].spans[0]
    assert code == root.status.code
    assert error_type == attributes(root).get("error.type")


def test_texts_and_numbers_of_all_kinds_arrive(fly: Callable[..., Flight]) -> None:
    """Chinese, negative integers and zero come through; absent values make no attribute."""
    flight = fly()
    flight.row(
        label="正面评价",
        tokens=0,
        stages={"network.receive": (0, 0), "model.forward": (1, 1)},
        columns={"network.receive/bytes": -5, "model.forward/provider": "处理器"},
    )
    flight.row(
        stages={"network.receive": (0, 0)},
        columns={"network.receive/bytes": -(2**63) + 1},
        label="",
        confidence=float("nan"),
    )
    first: list[Any] = []
    second: list[Any] = []
    for span in official(flight).resource_spans[0].scope_spans[0].spans:
        (first if span.trace_id.endswith(b"\x12\x34") and span.trace_id[8] == 1 else second).append(span)
    by_name = {span.name: attributes(span) for span in first}
    assert by_name["POST /v1/sentiment"]["label"] == "正面评价"
    assert by_name["POST /v1/sentiment"]["tokens"] == 0
    assert by_name["network.receive"]["bytes"] == -5
    assert by_name["model.forward"]["provider"] == "处理器"
    others = {span.name: attributes(span) for span in second}
    assert others["network.receive"]["bytes"] == -(2**63) + 1
    assert not {"label", "confidence"} & set(others["POST /v1/sentiment"])


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=8))
def test_any_attributes_are_encoded_as_the_official_classes_would(values: dict[str, Any]) -> None:
    """Empty strings, surrogates, all 64-bit integers and all floats."""
    request = ExportTraceServiceRequest()
    request.ParseFromString(export_request({resource_bytes(values): []}, "1"))
    found = {item.key: plain(item.value) for item in request.resource_spans[0].resource.attributes}
    clean = {
        key.encode("utf-8", "replace").decode(): v.encode("utf-8", "replace").decode() if isinstance(v, str) else v
        for key, v in values.items()
    }
    assert clean == found
    assert [type(value) for value in clean.values()] == [type(value) for value in found.values()]


def test_a_request_that_never_ended_is_a_span_in_error(fly: Callable[..., Flight]) -> None:
    """A killed worker's requests reach the trace backend, with the last stage that they reached."""
    flight = fly()
    record = flight.begin(stage="model.forward")
    with RingFile(flight.path) as ring:
        (request,) = open_requests(ring, alive=False)
    raw = export_request({resource_bytes({}): [open_span(request, request.start_unix_ns + 7)]}, "1")
    (span,) = ExportTraceServiceRequest.FromString(raw).resource_spans[0].scope_spans[0].spans
    assert span.trace_id.hex() == record.trace_id
    assert span.end_time_unix_nano - span.start_time_unix_nano == 7
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert {"last_stage": "model.forward", "error.type": "worker_died"}.items() <= attributes(span).items()
    assert attributes(span)["session.id"] == attributes(span)["session_id"] == "session-0123456789ab"


def test_sending_a_row_again_makes_no_second_span(fly: Callable[..., Flight]) -> None:
    """Span ids depend on the row alone, so that a backend that gets them twice keeps one."""
    flight = fly()
    flight.row(stages={"network.receive": (0, 5), "model.forward": (1, 1)})
    assert official(flight) == official(flight)


def test_exported_and_looked_up_spans_are_the_same(fly: Callable[..., Flight]) -> None:
    """`trace` in the terminal shows the ids, parents and attributes that Jaeger shows."""
    flight = fly()
    flight.row(
        stages={"scheduler.dispatch": (1_000, 4_000), "model.forward": (2_000, 1_000)}, outcome=3, reason="deadline"
    )
    exported = official(flight).resource_spans[0].scope_spans[0].spans
    names = {span.span_id: span.name for span in exported}
    with RingFile(flight.path) as ring:
        rows = ring.read(0).rows
        view = view_row(RowPlan(rows.dtype, ring.header.stages), rows.tolist()[0], ring.strings(), ring.header)
    assert [(s.name, s.span_id.hex(), names.get(s.parent_span_id, ""), attributes(s)) for s in exported] == [
        (s.name, s.span_id, s.parent, dict(s.attributes)) for s in view.spans
    ]


def test_a_stage_that_says_500_is_a_span_in_error(fly: Callable[..., Flight]) -> None:
    """Requirement A2: a failed call to Triton marks its own span, whatever became of the request."""
    flight = fly()
    attributes = {"error": "str", "status": "int"}
    flight.owned.writer.plan._declare_all(
        [StageSpec("triton.client", attributes=attributes), StageSpec("fallback.cpu", attributes={"status": "str"})]
    )
    stages = {"triton.client": (1_000, 4_000_000), "fallback.cpu": (5_000_000, 9_000)}
    columns: dict[str, Any] = {"triton.client/error": "timeout", "fallback.cpu/status": "500"}
    flight.row(stages=stages, columns={**columns, "triton.client/status": 500})
    flight.row(stages=stages, columns={**columns, "triton.client/status": 404})

    spans = official(flight).resource_spans[0].scope_spans[0].spans
    codes = [span.status.code for span in spans if span.name == "triton.client"]

    assert [Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET] == codes
    assert {Status.STATUS_CODE_UNSET} == {span.status.code for span in spans if span.name == "fallback.cpu"}
