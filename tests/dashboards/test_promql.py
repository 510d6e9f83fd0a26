"""Queries are judged without asking anybody."""

from __future__ import annotations

import pytest

from dashboards.promql import problems


@pytest.mark.parametrize(
    "expr",
    [
        'sum by (outcome) (rate(model_requests_total{outcome=~"ok|error", service=~".*"}[1m]))',
        "histogram_quantile(0.95, sum by (input_bucket, le) (rate(model_latency_seconds_bucket[1m])))",
        'max(up{job="service"})',
        "service:model_request_errors:ratio_rate5m / 0.001",
        "rate(nv_inference_count[1m])",
        "min_over_time(sum(rate(model_requests_total[1m]))[2m:5s])",
    ],
)
def test_queries_over_known_names_are_well(expr: str) -> None:
    """Ours, those of other programs, and recorded ones."""
    assert [] == problems(expr, {"service:model_request_errors:ratio_rate5m"})


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        ("rate(model_requests_total)", "is no PromQL"),
        ("sum(rate(model_reqests_total[1m]))", "model_reqests_total is no metric"),
        ('rate(model_requests_total{outcom="ok"}[1m])', "has no label outcom"),
        ('rate(model_requests_total{outcome="okay"}[1m])', "outcome is never 'okay'"),
        ("sum by (outcom) (rate(model_requests_total[1m]))", "groups by outcom"),
        ("model_requests_total", "only grows"),
        ("max(model_latency_seconds_count)", "only grows"),
        ("nv_inference_count", "only grows"),
        ('up{jobs="service"}', "up has no label jobs"),
        ("rate(model_latency_seconds[1m])", "is a histogram"),
        ('rate(model_latency_seconds_bucket{le="0.301"}[1m])', "has no bound 0.301"),
        ("histogram_quantile(0.9, sum by (stage) (rate(model_stage_seconds_bucket[1m])))", "without le"),
        ("service:model_request_errors:ratio_rate5m", "is no metric"),
        ('{job="service"}', "a selector without a name"),
    ],
)
def test_what_would_show_nothing_is_said(expr: str, said: str) -> None:
    """Each of these would be an empty panel, or one that shows nonsense."""
    assert any(said in what for what in problems(expr)), problems(expr)
