"""Counters, histograms and quantiles over raw series."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.promql import selectors
from exporters.names import KUBERNETES, METRICS, TRITON_SERVER
from runbooks import signals
from runbooks.evidence import Series


def series(values: list[float], **labels: str) -> Series:
    """Return a series with a sample every five seconds from 0 on."""
    return Series(labels, np.arange(len(values), dtype=np.float64) * 5.0, np.array(values, dtype=np.float64))


@given(steps=st.lists(st.integers(0, 1000), min_size=1, max_size=30), resets=st.sets(st.integers(1, 29)))
def test_an_increase_counts_what_was_added_across_restarts(steps: list[int], resets: set[int]) -> None:
    """A counter that falls began anew at 0: growth before and after the restart adds up."""
    values, now, expected = [0.0], 0.0, 0
    for index, step in enumerate(steps):
        if index in resets and step < now:
            now = 0.0
        now += step
        expected += step
        values.append(now)

    assert expected == signals.increase([series(values)], -1.0, 1e9)


def test_an_increase_counts_only_the_time_asked_for() -> None:
    """Growth up to and including the end, from after the start."""
    assert 2.0 == signals.increase([series([0, 1, 2, 3, 4])], 5.0, 15.0)


@given(counts=st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_a_histogram_gives_each_bucket_its_own_count(counts: list[int]) -> None:
    """Cumulative buckets come back as counts per bucket."""
    cumulative = np.cumsum(counts)
    buckets = [
        series([0, float(total)], le=bound) for total, bound in zip(cumulative, ("0.1", "1", "+Inf"), strict=True)
    ]

    assert dict(zip((0.1, 1.0, float("inf")), counts, strict=True)) == signals.histogram(buckets, -1.0, 10.0)


@given(
    counts=st.dictionaries(st.sampled_from((0.1, 0.2, 0.5, 1.0, float("inf"))), st.integers(0, 100), min_size=1),
    shares=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)),
)
def test_a_quantile_lies_in_a_bucket_and_grows_with_its_share(
    counts: dict[float, int], shares: tuple[float, float]
) -> None:
    """None for an empty histogram; else inside the bounds, and not falling."""
    ordered = {bound: float(counts[bound]) for bound in sorted(counts)}
    found = [signals.quantile(ordered, share) for share in sorted(shares)]

    if not sum(counts.values()):
        assert [None, None] == found
    else:
        assert all(one is not None and 0 <= one <= 1.0 for one in found)
        assert all(before <= after for before, after in pairwise(one for one in found if one is not None))


@pytest.mark.parametrize("query", signals.QUERIES)
def test_every_query_names_a_metric_that_exists(query: str) -> None:
    """Each query is about metrics of exporters.names, Prometheus' own `up`, kube-state-metrics, or Triton's own."""
    for one in selectors(query):
        stem = one.metric.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")

        assert one.metric == "up" or {one.metric, stem} & {*METRICS, *KUBERNETES, *TRITON_SERVER}
