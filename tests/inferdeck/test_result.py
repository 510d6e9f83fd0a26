"""Every result has the same stamp, and JSON that strict parsers read."""

from __future__ import annotations

import json

import pytest

from inferdeck.result import Stopwatch, iso_utc, to_json


def test_a_result_is_stamped_with_times_of_its_own_clock() -> None:
    """Started is wall clock, took_s is monotonic: a jump of the wall clock does not matter."""
    wall, ticks = iter([1767225600.25]), iter([10.0, 12.5])
    watch = Stopwatch(clock=lambda: next(wall), tick=lambda: next(ticks))

    stamped = watch.stamp({"a": 1})

    assert ("2026-01-01T00:00:00.250Z", 2.5, 1) == (stamped["started"], stamped["took_s"], stamped["a"])
    assert stamped["version"]
    assert stamped["commit"]


def test_times_are_utc_with_milliseconds() -> None:
    """Sortable as text."""
    assert "1970-01-01T00:00:00.000Z" == iso_utc(0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    """Absence is null in our results."""
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json({"a": value})


def test_chinese_stays_readable() -> None:
    """No escapes for letters."""
    assert "好" in to_json({"a": "好"})
    assert {"a": "好"} == json.loads(to_json({"a": "好"}))
