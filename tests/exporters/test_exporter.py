"""How often the exporter looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.exporter import pause_seconds
from exporters.follow import Follower
from exporters.state import State
from tests.exporters.conftest import Flight


@pytest.mark.parametrize(
    ("laps", "since", "expected"),
    [
        (0.0, 1.0, 1.0),
        (0.1, 1.0, 1.0),
        (0.5, 1.0, 0.5),
        (0.125, 0.25, 0.5),
        (4.0, 1.0, 0.0625),
        (100.0, 1.0, 0.05),
        (0.5, float("inf"), 1.0),
    ],
)
def test_a_ring_that_fills_quickly_is_looked_at_again_before_a_quarter_of_a_lap(
    laps: float, since: float, expected: float
) -> None:
    """By the rate since the last look: never more seldom than set, never without a pause; the first look is free."""
    assert expected == pause_seconds(laps, since, 1.0)


def test_a_look_tells_how_much_of_a_lap_it_found(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Of the ring that went furthest; nothing new is 0."""
    slow, fast = fly(ring_rows=64), fly(ring_rows=64)
    follower = Follower(ring_dir, State(), without_state=False)
    slow.row()
    for _ in range(32):
        fast.row()
    follower.tick()
    busy = follower.laps_read
    follower.tick()
    follower.close()

    assert (0.5, 0.0) == (busy, follower.laps_read)
