from __future__ import annotations

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from exporters.labels import OTHER
from exporters.names import METRICS
from exporters.totals import Totals

HISTOGRAM = "model_latency_seconds"
BUCKETS = len(METRICS[HISTOGRAM].buckets) + 1


def some(counts: list[int], total: int, requests: int) -> Totals:
    """Totals with one histogram and one counter."""
    totals = Totals()
    totals.observe(HISTOGRAM, ("short",), counts + [0] * (BUCKETS - len(counts)), total)
    totals.add("model_requests_total", ("/a", "ok"), requests)
    return totals


PARTS = st.builds(some, st.lists(st.integers(0, 1000), max_size=BUCKETS), st.integers(0, 10**15), st.integers(0, 10**9))


@given(st.lists(PARTS, max_size=8), st.randoms())
def test_totals_do_not_depend_on_the_order_of_adding(parts: list[Totals], chance: random.Random) -> None:
    """The same parts in another order give the very same totals, sums included."""
    first, second = Totals(), Totals()
    for part in parts:
        first.merge(part)
    chance.shuffle(parts)
    for part in parts:
        second.merge(part)
    assert first == second


@given(PARTS, PARTS)
def test_growth_is_what_was_added(before: Totals, added: Totals) -> None:
    """`since` gives back exactly what was merged after the earlier totals."""
    now = Totals()
    now.merge(before)
    now.merge(added)
    assert added == now.since(before)


def test_a_value_that_fell_counts_as_nothing_added() -> None:
    """A status page that goes backwards never lowers a total."""
    grown = some([1], 10, 1).since(some([5], 50, 7))
    assert grown.value("model_requests_total", "/a", "ok") == 0
    assert grown.histograms[HISTOGRAM]["short",].total == 0


@given(PARTS)
def test_json_brings_totals_back(totals: Totals) -> None:
    """What is written to the state file is what is read from it."""
    assert totals == Totals.from_json(json.loads(json.dumps(totals.to_json())))


def test_unknown_metrics_and_other_bounds_are_left_out() -> None:
    """A state of another version costs the families that changed, not the others."""
    form = some([1], 10, 3).to_json()
    form["counters"]["gone_total"] = [[1]]
    form["histograms"][HISTOGRAM]["bounds"] = [1.0]
    totals = Totals.from_json(form)
    assert totals.value("model_requests_total", "/a", "ok") == 3
    assert not totals.histograms


def test_label_values_are_bounded() -> None:
    """Routes beyond the limit are counted under "(other)", so that nothing is lost and nothing grows."""
    totals = Totals()
    for number in range(100):
        totals.add("model_requests_total", (f"/{number}", "ok"), 1)
    routes = {labels[0] for labels in totals.counters["model_requests_total"]}
    assert len(routes) == METRICS["model_requests_total"].limits["route"] + 1
    assert totals.value("model_requests_total", OTHER, "ok") == 100 - 32
    totals.add("model_requests_total", ("/5", "error"), 1)
    assert totals.value("model_requests_total", "/5", "error") == 1


def test_every_closed_label_set_starts_at_zero() -> None:
    """All values of closed labels exist before anything was counted."""
    totals = Totals.at_zero()
    for metric in METRICS.values():
        if metric.kind == "gauge" or metric.job != "inferdeck-exporter" or not all(metric.labels.values()):
            continue
        series = (totals.counters | totals.histograms)[metric.name]
        expected = 1
        for values in metric.labels.values():
            expected *= len(values)
        assert expected == len(series), metric.name
