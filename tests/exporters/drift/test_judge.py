from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.drift.judge import Judge, Rules, confidence_weight


def test_drift_is_large_certain_and_lasts() -> None:
    """Three looks in a row by default, and the first healthy one ends it."""
    judge = Judge(Rules(), 8)
    assert ["suspected", "suspected", "drift", "drift"] == [judge.look(0.4, 1e-30, 500) for _ in range(4)]
    assert "same" == judge.look(0.2, 1e-30, 500)
    assert "suspected" == judge.look(0.4, 1e-30, 500)


def test_a_small_effect_is_none_however_certain() -> None:
    """Effect size first: with enough requests everything is significant."""
    judge = Judge(Rules(), 1)
    assert {"same"} == {judge.look(0.3, 0.0, 1_000_000) for _ in range(10)}


def test_too_few_requests_tell_nothing_and_break_the_row() -> None:
    """Neither drift nor none."""
    judge = Judge(Rules(looks=2), 1)
    assert ["suspected", "few", "suspected"] == [judge.look(0.9, 0.0, rows) for rows in (200, 199, 200)]
    assert "few" == judge.look(None, 1.0, 5000)


def test_who_looks_often_must_be_more_certain_each_time() -> None:
    """The same p that is enough at first no longer is after many looks, nor beside many features."""
    alpha = 0.01
    first = alpha * 6 / math.pi**2
    assert "suspected" == Judge(Rules(), 1).look(0.5, first * 0.99, 300)
    assert "same" == Judge(Rules(), 2).look(0.5, first * 0.99, 300)
    late = Judge(Rules(), 1)
    late.look(0.0, 1.0, 300)
    assert "same" == late.look(0.5, first * 0.99, 300)


def test_all_looks_together_err_no_more_than_alpha() -> None:
    """The allowed shares of a hundred thousand looks sum to alpha at most."""
    assert 1.0 > sum(6 / math.pi**2 / k**2 for k in range(1, 100_000)) > 0.999


@settings(deadline=None)
@given(st.floats(0.0, 1.0))
def test_the_weight_is_what_the_drift_leaves(score: float) -> None:
    """Between 0 and 1."""
    assert 1.0 - score == pytest.approx(confidence_weight(score))
