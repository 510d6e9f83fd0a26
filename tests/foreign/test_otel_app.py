from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

if TYPE_CHECKING:
    from tests.foreign.conftest import Watched

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("traceparent", [None, CALLER])
def test_rows_hang_under_the_span_of_the_instrumentation(watched: Watched, order: str, traceparent: str | None) -> None:
    """Both make one tree: the instrumentation's server span, below it our request, below that our stages."""
    headers = {"traceparent": traceparent} if traceparent else {}
    with watched.serve("uvicorn", "otel_app:app", "--fd", "{fd}", ATTACH=order) as (client, _):
        assert {"digits": 2} == client.get("/digits/a1b2", headers=headers).json()
        watched.rows(1)
        watched.until(lambda: any(span.name == "GET /digits/{text}" for span in watched.spans.of("opentelemetry")))
        watched.until(lambda: watched.spans.of("inferdeck"))
    [theirs] = [span for span in watched.spans.of("opentelemetry") if span.kind == Span.SPAN_KIND_SERVER]
    ours = {span.name: span for span in watched.spans.of("inferdeck")}
    request, counted = ours["GET /digits/{text}"], ours["digits.count"]

    assert theirs.span_id == request.parent_span_id
    assert request.span_id == counted.parent_span_id
    assert {theirs.trace_id} == {span.trace_id for span in ours.values()}
    assert (traceparent or theirs.trace_id.hex()).find(theirs.trace_id.hex()) >= 0
    # One server span per request: pipelines that count requests by it must not count twice.
    assert Span.SPAN_KIND_INTERNAL == request.kind
