"""Quantities and shares are read as Kubernetes reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.manifests.quantity import quantity, share


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("128Mi", 134217728.0),
        ("500m", 0.5),
        ("2", 2.0),
        (2, 2.0),
        ("1e3", 1000.0),
        ("1E", 1e18),
        ("30m", 0.03),
        ("1.5Gi", 1610612736.0),
    ],
)
def test_a_quantity_is_its_number_times_its_suffix(text: str | int, value: float) -> None:
    """Binary and decimal suffixes, exponents, and none."""
    assert value == pytest.approx(quantity(text))


@pytest.mark.parametrize("text", ["", "Mi", "1 Gi", "1gb", "two", "1e"])
def test_what_is_none_is_refused(text: str) -> None:
    """With the text in the error."""
    with pytest.raises(ValueError, match="no quantity"):
        quantity(text)


@pytest.mark.parametrize(
    ("value", "whole", "up", "pods"),
    [("25%", 2, True, 1), ("25%", 2, False, 0), (1, 2, False, 1), ("100%", 3, False, 3)],
)
def test_a_share_of_pods_is_rounded_as_the_controller_does(value: str | int, whole: int, up: bool, pods: int) -> None:
    """A surge up, what may be missing down: 25% of two pods surges by one and spares none."""
    assert pods == share(value, whole, up=up)


@given(st.integers(0, 100), st.integers(0, 1000))
def test_rounding_never_moves_by_a_whole_pod(percent: int, whole: int) -> None:
    """Up and down differ by one at most, and hold the exact share between them."""
    up, down = share(f"{percent}%", whole, up=True), share(f"{percent}%", whole, up=False)

    assert up - down in (0, 1)
    assert down * 100 <= whole * percent <= up * 100


def test_no_share_is_refused() -> None:
    """A word, or half a pod."""
    for value in ("all", "-1", "2.5"):
        with pytest.raises(ValueError, match="neither"):
            share(value, 2, up=True)
