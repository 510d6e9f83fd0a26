"""A flight record is sent as the row's spans would be, and written as a page that holds no stranger's markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from exporters.otlp import export_request, resource_bytes, view_spans
from exporters.trace_view import SpanView, TraceView
from inferdeck.errors import CannotRun
from inferdeck.promote import promote, send_found
from inferdeck.trace_page import render_page, write_page

TRACE, ROOT, STAGE = "0a" * 16, "01" * 8, "02" * 8


def view() -> TraceView:
    """Return a request that failed."""
    spans = [
        SpanView("POST /x", "", 0.0, 0.5, {"session.id": "s", "session_id": "s", "http.route": "/x"}, ROOT),
        SpanView("model.forward", "POST /x", 0.1, 0.2, {"seq_len": 7, "session.id": "s"}, STAGE),
    ]
    return TraceView(TRACE, "s", "2026", 0.5, "error", "", spans=spans, outcome="error", start_unix_ns=10**18)


def test_the_official_classes_read_the_same_request() -> None:
    """Ids, parent, times, attributes and the error."""
    request = ExportTraceServiceRequest.FromString(
        export_request({resource_bytes({"service.name": "reviews"}): [view_spans(view())]}, "1")
    )
    root, stage = request.resource_spans[0].scope_spans[0].spans

    assert (TRACE, ROOT, "", 2) == (root.trace_id.hex(), root.span_id.hex(), root.parent_span_id.hex(), root.kind)
    assert (STAGE, ROOT, 1) == (stage.span_id.hex(), stage.parent_span_id.hex(), stage.kind)
    assert (10**18, 10**18 + 500_000_000) == (root.start_time_unix_nano, root.end_time_unix_nano)
    assert 10**18 + 100_000_000 == stage.start_time_unix_nano
    assert (2, 0) == (root.status.code, stage.status.code)
    assert {"seq_len": 7, "session.id": "s"} == {
        one.key: one.value.int_value or one.value.string_value for one in stage.attributes
    }


def test_a_target_that_is_not_there_is_said() -> None:
    """Nothing was sent, and one line says so."""
    with pytest.raises(CannotRun, match=r"nothing was sent: http://127\.0\.0\.1:9 did not answer"):
        promote([view()], "http://127.0.0.1:9", "1")


def test_without_a_target_the_mend_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Jaeger runs, none is set."""
    monkeypatch.delenv("INFERDECK_EXPORTER_OTLP_ENDPOINT", raising=False)

    with pytest.raises(CannotRun, match="make jaeger"):
        send_found([], tmp_path)


def payload() -> dict[str, Any]:
    """Return a look-up's result with odd texts in it."""
    trace = view().to_dict() | {"why": "<script>alert(1)</script>", "slow_stage": "model.forward", "hint": ""}
    trace["spans"][1]["attributes"]["label"] = '"><img src=x onerror=alert(2)>'
    return {"traces": [trace], "sources": ["ring", "jaeger"], "lookup_s": 0.01}


def test_the_page_escapes_what_it_shows_and_loads_nothing() -> None:
    """Attributes are data of other programs."""
    page = render_page(payload())

    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert 2 == page.count('class="bar"')
    assert "margin-left:20.00%;width:40.00%" in page
    assert '<tr class="slow"><td class="name" style="padding-left:1.5em">model.forward' in page


def test_the_page_is_private_and_replaces_an_open_one(tmp_path: Path) -> None:
    """It holds session ids in full."""
    path = tmp_path / "page.html"
    path.write_text("x" * 100_000)
    path.chmod(0o644)

    write_page(path, payload())

    assert render_page(payload()) == path.read_text()
    assert 0o600 == path.stat().st_mode & 0o777


def test_nothing_found_is_a_page_too() -> None:
    """It says so."""
    assert "Nothing was found" in render_page({"traces": [], "sources": ["ring"], "lookup_s": 0.0})
