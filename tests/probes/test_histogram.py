from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from probes.histogram import Histogram


@given(st.lists(st.floats(0, 100)))
def test_every_duration_is_counted_once_below_its_bound(durations: list[float]) -> None:
    """Counts are per interval, upper bounds inclusive, the last count is what lies above all bounds."""
    bounds = (0.1, 1.0, 10.0)
    histogram = Histogram(bounds)
    for duration in durations:
        histogram.observe(duration)
    edges = (-1.0, *bounds, float("inf"))

    expected = [sum(low < value <= high for value in durations) for low, high in pairwise(edges)]
    assert expected == histogram.reading()["counts"]
    assert abs(histogram.reading()["sum_s"] - sum(durations)) <= 1e-6
