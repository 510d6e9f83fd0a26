"""How often the exporter looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.exporter import Exporter, pause_seconds
from exporters.follow import Follower
from exporters.settings import ExporterSettings
from exporters.state import State, load_state
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


def test_the_state_is_written_sooner_when_a_ring_fills(
    tmp_path: Path, ring_dir: Path, fly: Callable[..., Flight]
) -> None:
    """What a killed exporter must read again has to be in its ring still: a quarter of a lap is the most."""
    now = [0.0]
    settings = ExporterSettings(ring_dir=ring_dir, state_dir=tmp_path / "state", state_seconds=60, archive=False)
    flight, exporter = fly(ring_rows=64), Exporter(settings, clock=lambda: now[0])
    saved = []
    for rows in (0, 15, 0, 1, 0):
        for _ in range(rows):
            flight.row()
        exporter.tick()
        now[0] += 1.0
        state = load_state(tmp_path / "state" / "exporter.state")
        saved.append(0 if state is None else state.totals.value("telemetry_rows_read_total"))
    exporter.stop()

    # The first look writes; 15 of 64 are less than a quarter, 16 are one.
    assert [0, 0, 0, 16, 16] == saved


def test_a_state_that_could_not_be_written_is_tried_again_each_second(tmp_path: Path, ring_dir: Path) -> None:
    """However long its time is else: the alert on a full disk counts these tries."""
    now = [0.0]
    folder = tmp_path / "state"
    settings = ExporterSettings(ring_dir=ring_dir, state_dir=folder, state_seconds=60, archive=False)
    exporter = Exporter(settings, clock=lambda: now[0])
    # No file can take the place of a folder, whoever tries.
    (folder / "exporter.state").mkdir()
    for _ in range(4):
        exporter.tick()
        now[0] += 1.0
    failed = exporter.state.totals.value("telemetry_state_write_errors_total", "unwritable")
    (folder / "exporter.state").rmdir()
    exporter.stop()

    assert 4 == failed
