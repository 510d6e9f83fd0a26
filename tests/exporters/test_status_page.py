from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.names import METRICS
from exporters.status_page import cumulative, number

STATUS = {
    "loop_lag": {"bounds": [0.001, 0.1], "counts": [7, 2, 1], "sum_s": 0.75},
    "loop_blocked_s": 0.5,
    "gc": {"2": {"collections": 3, "pause": {"bounds": [0.01], "counts": [3, 0], "sum_s": 0.006}}},
    "cpu_s": 12.25,
    "loss": {"disk_full": 4},
    "open_overflow": 2,
    "fd_refused": 3,
    "probe_failures": {"gc": 1},
}


def repr_short(value: object) -> str:
    """A test id of bounded length."""
    return repr(value)[:10]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def test_all_figures_of_a_page_are_taken() -> None:
    """Seconds, counts and histograms arrive in base units."""
    totals = cumulative(STATUS)
    assert totals.value("runtime_event_loop_blocked_seconds_total") == 0.5
    assert totals.value("runtime_process_cpu_seconds_total") == 12.25
    assert totals.value("telemetry_requests_unrecorded_total", "disk_full") == 4
    assert totals.value("telemetry_open_slots_overflow_total") == 2
    assert totals.value("runtime_file_descriptors_refused_total") == 3
    assert totals.value("telemetry_probe_failures_total", "gc") == 1
    assert totals.histograms["runtime_event_loop_lag_seconds"][()].total == 750_000_000
    assert sum(totals.histograms["runtime_gc_pause_seconds"]["2",].counts) == 3


def test_refused_labels_are_told_apart_from_failing_sensors() -> None:
    """The recorder counts both under probe_failures; what a bound refused is no failure of a probe."""
    totals = cumulative({"probe_failures": {"gc": 1, "string_budget": 5, "stage_refused": 2}})
    assert {("gc",): 1} == totals.counters["telemetry_probe_failures_total"]
    assert {("string_budget",): 5, ("stage_refused",): 2} == totals.counters["telemetry_labels_refused_total"]


def test_other_bounds_go_to_the_next_higher_of_ours() -> None:
    """A histogram with its own bounds is never counted lower than it was measured."""
    page = {"loop_lag": {"bounds": [0.0015, 0.1, 60.0], "counts": [5, 2, 1, 1], "sum_s": 70.0}}
    counts = cumulative(page).histograms["runtime_event_loop_lag_seconds"][()].counts
    bounds = METRICS["runtime_event_loop_lag_seconds"].buckets
    assert counts[bounds.index(0.0025)] == 5
    assert counts[bounds.index(0.1)] == 2
    assert counts[-1] == 2


@given(st.dictionaries(st.sampled_from([*STATUS, "other"]), ANYTHING))
def test_a_malformed_page_never_raises(page: dict[str, Any]) -> None:
    """Whatever a damaged or newer worker writes, the other figures survive."""
    cumulative(page)
    assert cumulative({**STATUS, "cpu_s": page}).value("runtime_event_loop_blocked_seconds_total") == 0.5


@pytest.mark.parametrize("value", [None, "1", True, -1, float("nan"), float("inf"), [], 10**400], ids=repr_short)
def test_what_is_no_figure_is_none(value: object) -> None:
    """Only finite numbers from 0 up are figures."""
    assert number(value) is None
