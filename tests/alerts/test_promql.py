"""Tests of alerts/promql.py."""

from __future__ import annotations

import pytest

from alerts.load import load_catalogue
from alerts.model import fill
from alerts.promql import Matcher, Selector, grouping_labels, selectors


def test_metrics_are_found_and_nothing_else_is() -> None:
    """Functions, aggregations, keywords, durations and label lists are no metrics."""
    expr = """
      histogram_quantile(0.95, sum by (service, le) (rate(a_seconds_bucket{x="short", y!~"l|m"}[1m] offset 5m))) > 1.5e3
      and on (service) sum(b_total) without (x) unless c:record == bool 0  # d_total is only spoken of
      or group_left_total
    """

    assert ["a_seconds_bucket", "b_total", "c:record", "group_left_total"] == [s.metric for s in selectors(expr)]
    assert ["service", "le", "service", "x"] == grouping_labels(expr)


def test_conditions_are_kept_with_their_metric() -> None:
    """A selector knows its labels, operators and values; braces and commas inside a text are text."""
    assert [
        Selector("up", (Matcher("job", "=", "service"), Matcher("instance", "=~", "a{1,2}"))),
        Selector("", (Matcher("__name__", "=", "x"),)),
    ] == selectors("""up{job="service", instance=~'a{1,2}',} + {__name__="x"}""")


@pytest.mark.parametrize("expr", ["up{job=", "up{job='x'", "rate(x[5m)", "up ? 1", 'up{job="x" y}'])
def test_what_is_no_promql_is_refused(expr: str) -> None:
    """A broken expression is an error; it is never read as one without metrics."""
    with pytest.raises(ValueError, match=r"is no PromQL|is not closed|conditions are"):
        selectors(expr)


def test_shipped_expressions_speak_about_something() -> None:
    """Every shipped expression but the watchdog's names at least one metric."""
    silent = [alert.slug for alert in load_catalogue() if not selectors(fill(alert.expr, alert.thresholds))]

    assert ["watchdog"] == silent
