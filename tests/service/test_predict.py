"""From logits to a judgement."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.predict import softmax

LOGITS = st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3)


@given(LOGITS, st.floats(0.01, 100))
def test_softmax_is_a_distribution_that_keeps_the_order(logits: list[float], temperature: float) -> None:
    """Finite logits of any size give probabilities that sum to one, the largest at the largest."""
    probabilities = softmax(logits, temperature)
    assert all(0.0 <= p <= 1.0 for p in probabilities)
    assert math.fsum(probabilities) == pytest.approx(1.0)
    assert probabilities[logits.index(max(logits))] == max(probabilities)


def test_softmax_divides_by_the_temperature() -> None:
    """A temperature of two halves the logits."""
    assert softmax([0.0, 2.0, 4.0], 2.0) == pytest.approx(softmax([0.0, 1.0, 2.0], 1.0))
    assert softmax([0.0, math.log(2), math.log(5)], 1.0) == pytest.approx([0.125, 0.25, 0.625])
