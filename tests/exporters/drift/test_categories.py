from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association

from exporters.drift.categories import StreamCategories, chi_square_p, cramers_v

counts = st.lists(st.integers(1, 500), min_size=2, max_size=9)


@settings(deadline=None)
@given(counts, st.data())
def test_p_is_that_of_scipys_chi_square_test(reference: Any, data: st.DataObject) -> None:
    """Without Yates' correction, for every number of categories."""
    window = data.draw(st.lists(st.integers(0, 500), min_size=len(reference), max_size=len(reference)))
    if not sum(window):
        return
    expected = chi2_contingency([reference, window], correction=False).pvalue
    assert expected == pytest.approx(chi_square_p(np.array(reference), np.array(window)), rel=1e-9, abs=1e-280)


@settings(deadline=None)
@given(st.lists(st.integers(0, 500), min_size=2, max_size=6), st.permutations(range(6)))
def test_the_effect_is_cramers_v_where_both_rows_weigh_the_same(window: Any, order: list[int]) -> None:
    """With equal sums the weighting changes nothing, and scipy's V is ours."""
    window = [*window, 1]
    other = [window[place] for place in order if place < len(window)]
    other += window[len(other) :] if len(other) < len(window) else []
    if sorted(other) != sorted(window):
        return
    first, second = np.array(window), np.array(other)
    used = (first + second) > 0
    if used.sum() < 2:
        return
    expected = association(np.stack([first[used], second[used]]), method="cramer")
    assert expected == pytest.approx(cramers_v(first, second), abs=1e-9)


def test_the_effect_does_not_depend_on_sizes() -> None:
    """Ten times the reference, the same effect."""
    window = np.array([10, 30])
    assert cramers_v(np.array([50, 50]), window) == pytest.approx(cramers_v(np.array([5000, 5000]), window))


def test_a_new_word_counts_as_other_and_the_oldest_make_room() -> None:
    """A window full of words that the training never saw has the largest effect."""
    seen = StreamCategories({"mobile": 70, "web": 30}, 10)
    assert (None, 1.0) == (seen.effect(), seen.p_value())
    seen.extend(["mobile"] * 7 + ["web"] * 3)
    assert 0.0 == pytest.approx(seen.effect())
    assert (10, 100) == (seen.size, seen.reference_size)
    before = seen.nbytes
    seen.extend(["watch"] * 25)
    assert 1.0 == pytest.approx(seen.effect())
    assert 10 == seen.size
    assert before == seen.nbytes
    assert seen.p_value() < 1e-6


def test_one_category_alone_tells_nothing() -> None:
    """There is no effect where nothing can differ."""
    only = StreamCategories({"zh": 5}, 3)
    only.extend(["zh"])
    assert (None, 1.0) == (only.effect(), only.p_value())


@pytest.mark.parametrize("reference", [{}, {"a": 0}, {"a": -1, "b": 3}, {str(n): 1 for n in range(65)}])
def test_a_reference_that_is_no_distribution_is_refused(reference: Any) -> None:
    """Empty, negative, or more categories than are kept."""
    with pytest.raises(ValueError, match="reference"):
        StreamCategories(reference, 5)


def test_a_window_of_none_is_refused() -> None:
    """There would be nothing to compare."""
    with pytest.raises(ValueError, match="window"):
        StreamCategories({"a": 1}, 0)
