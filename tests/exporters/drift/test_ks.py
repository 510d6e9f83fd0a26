from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, kstwobign

from exporters.drift.ks import StreamKS, kolmogorov_p

finite = st.floats(-1e6, 1e6, allow_nan=False)
tied = st.integers(0, 6).map(float)
samples = st.lists(finite, min_size=1, max_size=60) | st.lists(tied, min_size=1, max_size=60)


# scipy's p (not looked at) divides by zero for samples of one
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@settings(deadline=None)
@given(samples, samples, st.integers(1, 40), st.integers(1, 17))
def test_the_statistic_is_scipys_to_the_last_bit_however_the_values_come(
    reference: Any, values: Any, window: Any, batch: Any
) -> None:
    """The window slides, wraps around and holds ties; both ways of computing are tried by the sizes drawn."""
    ks = StreamKS(reference, window)
    for start in range(0, len(values), batch):
        ks.extend(values[start : start + batch])
    assert ks_2samp(reference, values[-window:], method="asymp").statistic == ks.statistic()
    assert min(window, len(values)) == ks.size


@pytest.mark.parametrize("window", [1000, 4900, 5100, 10_000])
@pytest.mark.parametrize("ties", [False, True])
def test_large_windows_agree_with_scipy_beyond_their_wrap_around(window: Any, ties: bool) -> None:
    """Three laps and a bit, by sorting and by counting."""
    rng = np.random.default_rng(5)
    reference = rng.poisson(40, 10_000) if ties else rng.normal(size=10_000)
    values = rng.poisson(41, 3 * window + 37) if ties else rng.normal(0.1, 1.1, 3 * window + 37)
    ks = StreamKS(reference, window)
    for part in np.array_split(values, 7):
        ks.extend(part)
    assert ks_2samp(reference, values[-window:], method="asymp").statistic == ks.statistic()


def test_memory_does_not_grow_with_what_comes() -> None:
    """The arrays are made once."""
    ks = StreamKS(np.arange(10_000.0), 1000)
    before = ks.nbytes
    ks.extend(np.random.default_rng(1).normal(size=200_000))
    assert before == ks.nbytes < 1_000_000


def test_nan_is_no_observation_and_infinities_lie_beyond_all() -> None:
    """NaN is told and left out; a window of infinities is as far as can be."""
    ks = StreamKS([1.0, 2.0, 3.0], 10)
    assert 2 == ks.extend([float("nan"), float("nan")])
    assert ks.statistic() is None
    assert 1 == ks.extend([float("inf"), float("nan"), float("inf")])
    assert (1.0, 2) == (ks.statistic(), ks.size)
    ks.extend([float("-inf")] * 10)
    assert 1.0 == ks.statistic()


def test_one_sample_and_constant_features_have_a_distance() -> None:
    """The same constant is no distance; another one is the whole."""
    same, other = StreamKS([4.0] * 50, 5), StreamKS([4.0] * 50, 5)
    same.extend([4.0])
    other.extend([4.5])
    assert (0.0, 1.0) == (same.statistic(), other.statistic())


@pytest.mark.parametrize("reference", [[], [1.0, float("nan")], [float("inf")]])
def test_a_reference_that_is_no_distribution_is_refused(reference: Any) -> None:
    """Better no score than one against nonsense."""
    with pytest.raises(ValueError, match="reference"):
        StreamKS(reference, 10)


def test_a_window_of_none_is_refused() -> None:
    """There would be nothing to compare."""
    with pytest.raises(ValueError, match="window"):
        StreamKS([1.0], 0)


@settings(deadline=None)
@given(st.floats(0.0, 1.0), st.integers(1, 20_000), st.integers(1, 20_000))
def test_the_p_value_is_kolmogorovs_limit_at_stephens_argument(statistic: float, first: int, second: int) -> None:
    """Scipy has the limiting distribution; the argument is corrected for finite samples."""
    root = (first * second / (first + second)) ** 0.5
    expected = kstwobign.sf((root + 0.12 + 0.11 / root) * statistic)
    assert expected == pytest.approx(kolmogorov_p(statistic, first, second), abs=1e-8)
