"""Windows, their bare neighbours, medians and quartiles."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.bench.windows import Pair, Window, pair_up, quartiles, ratio, summarise

MICROSECONDS = st.floats(1, 1e4)


def window(variant: str, cpu_us: float = 100.0, rps: float = 1000.0, foreign: float = 0.0) -> Window:
    """Return a window with these figures."""
    return Window(variant, 1000, rps, cpu_us, foreign)


def test_each_window_gets_the_bare_windows_beside_it() -> None:
    """A window is compared with the bare windows right before and right after it, not with others."""
    bare = [window("bare", cpu) for cpu in (100.0, 110.0, 130.0)]
    a, b = window("a", 150.0), window("b", 200.0)

    pairs = pair_up([bare[0], a, bare[1], b, bare[2]], "bare")

    assert [Pair(a, bare[0], bare[1]), Pair(b, bare[1], bare[2])] == pairs
    assert [45.0, 80.0] == [pair.added_us for pair in pairs]


@pytest.mark.parametrize("order", [["a", "bare"], ["bare", "a"], ["bare", "a", "b", "bare"]])
def test_a_window_without_bare_neighbours_is_refused(order: list[str]) -> None:
    """A plan that leaves a window without a bare one on both sides is an error, not a guess."""
    with pytest.raises(ValueError, match="no bare window on both sides"):
        pair_up([window(name) for name in order], "bare")


@given(st.lists(st.tuples(MICROSECONDS, MICROSECONDS, MICROSECONDS), min_size=1, max_size=20))
def test_the_summary_is_the_median_of_the_differences(costs: list[tuple[float, float, float]]) -> None:
    """What was added is the median over rounds of the difference to the neighbours' mean, between its quartiles."""
    pairs = [Pair(window("a", cpu), window("bare", low), window("bare", high)) for low, cpu, high in costs]

    summary = summarise(pairs)

    assert statistics.median(cpu - (low + high) / 2 for low, cpu, high in costs) == pytest.approx(summary.added_us)
    assert summary.added_us_quartiles[0] <= summary.added_us <= summary.added_us_quartiles[1]
    assert (len(costs), 0, False) == (summary.kept, summary.dropped, summary.noisy)


@given(shift=st.floats(-50, 50), costs=st.lists(st.floats(100, 1000), min_size=1, max_size=9))
def test_a_machine_that_slows_down_changes_no_difference(shift: float, costs: list[float]) -> None:
    """A drift that hits a window and its neighbours alike cancels out."""
    steady = [Pair(window("a", cost), window("bare", 90.0), window("bare", 90.0)) for cost in costs]
    moved = [
        Pair(window("a", cost + shift), window("bare", 90.0 + shift), window("bare", 90.0 + shift)) for cost in costs
    ]

    assert summarise(steady).added_us == pytest.approx(summarise(moved).added_us)


def test_windows_with_foreign_load_are_dropped_and_counted() -> None:
    """Foreign load in a window, or in one of its neighbours, leaves the pair out."""
    quiet = [Pair(window("a", 120.0), window("bare"), window("bare"))] * 4
    loud = Pair(window("a", 900.0, foreign=0.31), window("bare"), window("bare"))
    beside = Pair(window("a", 900.0), window("bare"), window("bare", foreign=0.5))

    summary = summarise([*quiet, loud, beside])

    assert (20.0, 4, 2, False) == (summary.added_us, summary.kept, summary.dropped, summary.noisy)


def test_too_few_quiet_windows_are_all_used_and_said() -> None:
    """With fewer quiet pairs than four, all count and the summary says that it is noisy."""
    quiet = [Pair(window("a", 120.0), window("bare"), window("bare"))] * 3
    loud = [Pair(window("a", 140.0, foreign=1.0), window("bare"), window("bare"))] * 4

    summary = summarise([*quiet, *loud])

    assert (40.0, 7, 0, True) == (summary.added_us, summary.kept, summary.dropped, summary.noisy)


def test_one_quiet_round_is_not_noisy() -> None:
    """A run of one round asks for no more quiet pairs than it has."""
    assert not summarise([Pair(window("a"), window("bare"), window("bare"))]).noisy


def test_requests_a_second_are_compared_as_a_ratio() -> None:
    """The rate is a share of the neighbours' mean rate."""
    pair = Pair(window("a", rps=600.0), window("bare", rps=900.0), window("bare", rps=1100.0))

    assert 0.6 == pair.rps_ratio


def test_the_exporter_is_summarised_where_there_is_one() -> None:
    """Our exporter's cost is a median of its own; peers have none, which is not 0."""
    ours = Pair(Window("a", 1, 1.0, 1.0, exporter_us=5.0), window("bare"), window("bare"))

    assert 5.0 == summarise([ours]).exporter_us
    assert summarise([Pair(window("a"), window("bare"), window("bare"))]).exporter_us is None


def test_nothing_to_summarise_is_an_error() -> None:
    """No windows give no figure."""
    with pytest.raises(ValueError, match="no window"):
        summarise([])


def test_quartiles_of_one_value_are_that_value() -> None:
    """One round has no spread."""
    assert (3.0, 3.0) == quartiles([3.0])
    assert (1.5, 2.5) == quartiles([1.0, 2.0, 3.0])


@pytest.mark.parametrize(("part", "whole"), [(None, 1.0), (1.0, None), (1.0, 0.0), (1.0, -2.0)])
def test_a_ratio_of_what_is_unknown_is_unknown(part: float | None, whole: float | None) -> None:
    """A peer that cost nothing, or was not measured, gives no ratio."""
    assert ratio(part, whole) is None
