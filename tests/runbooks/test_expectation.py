"""Expectations as pages write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.expectation import Expectation, ExpectationError

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(value=finite, bound=st.integers(-1000, 1000))
def test_a_comparison_judges_as_python_does(value: float, bound: int) -> None:
    """Each sign means what it means in Python."""
    assert (value > bound) == Expectation.parse(f"> {bound}").judge(value)
    assert (value <= bound) == Expectation.parse(f"<= {bound}").judge(value)
    assert (value == bound) == Expectation.parse(f"== {bound}").judge(value)


def test_what_cannot_be_seen_is_not_judged() -> None:
    """None stays None: absence is neither for nor against."""
    assert Expectation.parse("> 1").judge(None) is None
    assert Expectation.parse("present").judge(None) is None
    assert Expectation.parse("> 1").judge("text") is None


def test_truth_and_presence_are_judged() -> None:
    """`== true` takes a truth value, `present` any text."""
    assert Expectation.parse("== true").judge(True) is True
    assert Expectation.parse("== true").judge(False) is False
    assert Expectation.parse("present").judge("file.py:3 f") is True
    assert Expectation.parse("present").judge("") is False


@pytest.mark.parametrize("text", ["", "0.05", "=> 3", "> three", "> 5%", "> 0.2s", "!= 3"])
def test_a_wrong_expectation_is_refused_with_the_way_to_write_it(text: str) -> None:
    """Percent, units and unknown signs do not pass."""
    with pytest.raises(ExpectationError, match="write `present`, or one of"):
        Expectation.parse(text)
