"""Each check of the rows is broken once on purpose."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.state import State, save_state
from inferdeck.checks import Check
from inferdeck.doctor_rows import MIB, clock, exporter_state, room, row_files
from inferdeck.settings import StackSettings, load_settings
from probes import RecorderSettings
from probes.ringfile import OwnedRing, open_ring
from probes.settings import Identity


@pytest.fixture
def settings(tmp_path: Path) -> StackSettings:
    """Return settings with folders of their own."""
    return load_settings(state_dir=tmp_path / "state", ring_dir=tmp_path / "rows", service_workers=2)


@pytest.fixture
def ring(settings: StackSettings) -> Iterator[OwnedRing]:
    """A living worker's ring."""
    sizes = RecorderSettings(ring_rows=64, open_slots=4)
    ring = open_ring(settings.ring_path, "s", Identity(host="h"), sizes, lambda _: None)
    yield ring
    ring.close()


def one(checks: Iterator[Check]) -> Check:
    """Return the only check."""
    (check,) = checks
    return check


def test_sound_rows_are_ok_and_missing_ones_absent(settings: StackSettings, ring: OwnedRing) -> None:
    """What the recorder makes has the right modes."""
    assert "ok" == one(row_files(settings.ring_path)).state
    assert "absent" == one(row_files(settings.ring_path / "none")).state


def test_a_ring_or_key_that_others_may_read_is_told(settings: StackSettings, ring: OwnedRing) -> None:
    """Rows hold session ids, and the key leads from hashes back to them."""
    for path in (ring.path, settings.ring_path / "key"):
        assert path is not None
        path.chmod(0o644)
        check = one(row_files(settings.ring_path))
        path.chmod(0o600)

        assert ("warn", True) == (check.state, path.name in check.detail)


def test_a_missing_or_cut_key_fails(settings: StackSettings, ring: OwnedRing) -> None:
    """Without it no session is found."""
    key = settings.ring_path / "key"
    key.write_bytes(b"short")
    assert "fail" == one(row_files(settings.ring_path)).state
    key.unlink()
    assert "fail" == one(row_files(settings.ring_path)).state


def test_a_file_that_is_no_ring_is_told(settings: StackSettings, ring: OwnedRing) -> None:
    """By its name."""
    foreign = settings.ring_path / "x.ring"
    foreign.write_bytes(b"no")
    foreign.chmod(0o600)

    check = one(row_files(settings.ring_path))

    assert ("warn", True) == (check.state, "x.ring" in check.detail)


@pytest.mark.parametrize(("free_mib", "state"), [(0, "fail"), (20, "fail"), (40, "warn"), (80, "ok")])
def test_room_is_compared_with_what_the_workers_take(settings: StackSettings, free_mib: int, state: str) -> None:
    """Two workers take 34 MiB, and twice that while a restart overlaps."""
    check = one(room(settings, free_mib * MIB))

    assert (state, state != "ok") == (check.state, bool(check.mend))
    assert "2 workers take 33 MiB" in check.detail


def test_rings_that_are_there_need_no_further_room(settings: StackSettings, ring: OwnedRing) -> None:
    """One of two workers has its file: one more is needed, not two."""
    assert "warn" == one(room(settings, 20 * MIB)).state


def test_the_exporters_state_is_looked_at(tmp_path: Path) -> None:
    """Absent, fresh, old, damaged; an old one matters while the exporter runs."""
    assert ["absent", "warn"] == [one(exporter_state(tmp_path, running)).state for running in (False, True)]
    path = tmp_path / "exporter.state"
    save_state(path, State())
    assert "ok" == one(exporter_state(tmp_path, running=True)).state
    later = time.time() + 120
    assert ["ok", "fail"] == [one(exporter_state(tmp_path, running, later)).state for running in (False, True)]
    path.write_bytes(b"x" * 100)
    assert "warn" == one(exporter_state(tmp_path, running=True)).state


def test_the_clock_is_seen_from_three_sides(settings: StackSettings, ring: OwnedRing) -> None:
    """Older than the program, behind our own files, stepped since a worker's start."""
    program = Path(__file__)

    assert "ok" == one(clock(settings, program)).state
    assert "older than this program" in one(clock(settings, program, now=1.0)).detail
    stepped = one(clock(settings, program, now=time.time() + 5.0))
    assert ("warn", True) == (stepped.state, "stepped by 5.0 s" in stepped.detail)
    settings.state_path.mkdir()
    state = settings.state_path / "exporter.state"
    state.touch()
    os.utime(state, (time.time() + 300, time.time() + 300))
    ahead = one(clock(settings, program))
    assert ("fail", True) == (ahead.state, "in the future" in ahead.detail)


def test_a_dead_workers_start_tells_nothing_about_the_clock(settings: StackSettings, ring: OwnedRing) -> None:
    """Its rows are history; only a living worker goes on writing with the old anchor."""
    ring.close()

    assert "ok" == one(clock(settings, Path(__file__), now=time.time() + 5.0)).state
