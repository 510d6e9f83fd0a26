"""The choices that boards offer at their top."""

from __future__ import annotations

from typing import Final

from dashboards.spec import Variable

__all__ = ["BUCKET", "ROUTE", "SERVICE", "SESSION", "TRACE", "TRACED_SERVICE"]

SERVICE: Final = Variable(
    "service",
    "Service",
    "model_requests_total",
    "service",
    may_be_empty="the label is put on by the scrape configuration; one service alone needs none, and All matches it",
)
BUCKET: Final = Variable("input_bucket", "Length of input", "model_latency_seconds_count", "input_bucket")
ROUTE: Final = Variable("route", "Route", "model_requests_total", "route")
SESSION: Final = Variable("session_id", "Session id")
TRACE: Final = Variable("trace_id", "Trace id")
TRACED_SERVICE: Final = Variable("traced_service", "Service in Jaeger")
