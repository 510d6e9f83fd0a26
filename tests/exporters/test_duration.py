"""The one grammar of durations."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.duration import parse_duration
from inferdeck.look_up import parse_duration as of_the_console


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1.5h", 5400), (" 2h ", 7200), ("1d", 86400), ("0.001", 0.001)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    """Seconds, minutes, hours, days; page and console read the very same."""
    assert (seconds, seconds) == (parse_duration(text), of_the_console(text))


@pytest.mark.parametrize("text", ["", "m", "-5m", "1.h", ".5m", "1.2345s", "5 m", "5M", "1h30m", "99999999999s", "١٥m"])
def test_other_durations_are_refused(text: str) -> None:
    """With what would be right."""
    with pytest.raises(ValueError, match="15m"):
        parse_duration(text)


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    """Nothing else is raised, and nothing below zero comes out."""
    with contextlib.suppress(ValueError):
        assert parse_duration(text) >= 0
