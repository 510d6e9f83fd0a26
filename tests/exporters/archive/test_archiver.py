from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits
from exporters.archive.lock import archive_lock
from exporters.archive.sealing import write_segment
from exporters.archive.segment import PART_SUFFIX, Segment, list_segments, times_of

if TYPE_CHECKING:
    from exporters.archive.blocks import Part
    from tests.exporters.archive.conftest import Clock
    from tests.exporters.conftest import Flight

ROOT = Path(__file__).resolve().parents[3]
Make = Callable[..., Archiver]
Fly = Callable[..., "Flight"]
START = 1_700_000_000_000_000_000


def sequences(folder: Path) -> list[tuple[str, int]]:
    """Ring and sequence number of each archived row."""
    found = []
    for path in list_segments(folder):
        with Segment(path) as segment:
            found += [(part.ring, int(seq)) for part in segment.parts() for seq in part.rows["seq"]]
    return found


def fill(flight: Flight, rows: int) -> None:
    """Write so many rows."""
    for _ in range(rows):
        flight.row()


def test_rows_are_sealed_when_they_waited_long(fly: Fly, archiver: Make, folder: Path, clock: Clock) -> None:
    """Not before, and each row once."""
    flight, one = fly(), archiver(Limits(seconds=300))
    fill(flight, 3)
    one.look()
    clock.advance(299)
    one.look()
    assert [] == sequences(folder)
    clock.advance(2)
    one.look()
    one.look()
    assert [(flight.path.name, 0), (flight.path.name, 1), (flight.path.name, 2)] == sequences(folder)
    assert 3 == one.take_counts().value("telemetry_archive_rows_total")


def test_rows_are_sealed_when_they_are_many(fly: Fly, archiver: Make, folder: Path) -> None:
    """Over all workers, and no segment has more than the bound."""
    first, second = fly(), fly()
    one = archiver(Limits(rows=100))
    one.look()
    fill(first, 70)
    fill(second, 40)
    one.look(everything=True)
    paths = list_segments(folder)
    assert 2 == len(paths)
    assert 110 == len(set(sequences(folder)))
    with Segment(paths[0]) as segment:
        assert 100 == sum(block.rows for block in segment.blocks())


def test_rows_are_sealed_before_their_ring_goes_round(fly: Fly, archiver: Make, folder: Path) -> None:
    """At half a lap, whatever the other bounds say: what leaves the ring must be in the archive."""
    flight, one = fly(ring_rows=256), archiver()
    one.look()
    for _ in range(10):
        fill(flight, 127)
        one.look()
        fill(flight, 1)
        one.look()
    assert 1280 == len(set(sequences(folder))) == len(sequences(folder))
    assert 0 == one.take_counts().value("telemetry_archive_rows_lost_total", "overwritten")


def test_what_is_overwritten_before_its_seal_is_counted(fly: Fly, archiver: Make, folder: Path) -> None:
    """A look-up cannot find these rows, and the operator must be able to see that."""
    flight, one = fly(ring_rows=256), archiver()
    one.look()
    fill(flight, 300)
    one.look()
    assert 256 == len(sequences(folder))
    counts = one.take_counts()
    assert 44 == counts.value("telemetry_archive_rows_lost_total", "overwritten")
    assert 256 == counts.value("telemetry_archive_rows_total")


def test_no_row_is_sealed_twice_after_a_restart(fly: Fly, archiver: Make, folder: Path) -> None:
    """How far each ring is archived stands in the segments: nothing else has to survive."""
    flight = fly()
    fill(flight, 20)
    archiver().look(everything=True)
    fill(flight, 5)
    again = archiver()
    again.look(everything=True)
    assert list(range(25)) == [seq for _, seq in sequences(folder)]
    assert 5 == again.take_counts().value("telemetry_archive_rows_total")


def test_rows_that_nobody_archived_are_not_called_lost(fly: Fly, archiver: Make, folder: Path) -> None:
    """An exporter that comes to a ring on its tenth lap takes what is there."""
    flight = fly(ring_rows=256)
    fill(flight, 1000)
    one = archiver()
    one.look(everything=True)
    assert 256 == len(sequences(folder))
    assert 0 == one.take_counts().value("telemetry_archive_rows_lost_total", "overwritten")


def test_stopping_seals_what_waits(fly: Fly, archiver: Make, folder: Path) -> None:
    """Ring files are memory: after a shutdown of the machine the archive is all there is."""
    flight, one = fly(), archiver()
    fill(flight, 2)
    one.start()
    one.stop()
    assert 2 == len(sequences(folder))


def test_services_with_other_columns_share_a_segment(fly: Fly, archiver: Make, folder: Path) -> None:
    """Each ring file keeps its own columns, and a schema that grows is followed."""
    first, second = fly(), fly(service="other")
    first.row()
    second.row()
    one = archiver()
    one.look(everything=True)
    with second.begin().stage("tokens.count", width=3):
        pass
    second.row(stages={"tokens.count": (1, 2)})
    first.row()
    one.look(everything=True)
    assert 4 == len(sequences(folder))
    with Segment(list_segments(folder)[-1]) as segment:
        grown = {part.header.service: part.rows.dtype.names or () for part in segment.parts()}
    assert "tokens.count/width" in grown["other"]
    assert "tokens.count/width" not in grown["sentiment"]


def test_folder_and_files_are_private(fly: Fly, archiver: Make, folder: Path) -> None:
    """0700 and 0600, also when somebody made the folder with other rights."""
    folder.mkdir(mode=0o755, parents=True)
    flight = fly()
    fill(flight, 1)
    archiver().look(everything=True)
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert {".npz", ".key", ""} == {path.suffix for path in folder.iterdir()}


@pytest.mark.parametrize("bound", ["bytes", "hours"])
def test_the_oldest_segments_go_first(fly: Fly, archiver: Make, folder: Path, clock: Clock, bound: str) -> None:
    """By bytes and by hours; what is left is told."""
    flight = fly(START)
    limits = Limits(keep_bytes=12_000) if bound == "bytes" else Limits(keep_seconds=3600)
    one = archiver(limits)
    kept_before = 0
    for _ in range(8):
        fill(flight, 10)
        one.look(everything=True)
        clock.advance(1000)
        flight.clock = clock.unix_ns
        kept_before = max(kept_before, len(list_segments(folder)))
    paths = list_segments(folder)
    assert 1 < len(paths) < 8
    assert kept_before >= len(paths)
    assert times_of(paths[-1])[0] == START + 7 * 1000 * 10**9
    gauges = one.gauges()
    assert sum(path.stat().st_size for path in paths) == gauges["telemetry_archive_bytes"][()]
    assert times_of(paths[0])[0] / 1e9 == gauges["telemetry_archive_oldest_timestamp_seconds"][()]
    if bound == "bytes":
        assert gauges["telemetry_archive_bytes"][()] <= 12_000


def test_an_empty_archive_has_no_oldest_request(archiver: Make) -> None:
    """Absent, not 0, which would be 1970."""
    one = archiver()
    one.look()
    assert {"telemetry_archive_bytes": {(): 0.0}} == one.gauges()


def test_a_full_disk_is_counted_and_rows_wait(fly: Fly, archiver: Make, folder: Path, clock: Clock) -> None:
    """Tried again after a while, not at each look; nothing is lost while the ring still holds the rows."""
    full = [True]
    tries = [0]

    def write(target: Path, parts: list[Part]) -> Path:
        tries[0] += 1
        if full[0]:
            raise OSError(28, "No space left on device")
        return write_segment(target, parts)

    flight, one = fly(), archiver(write=write)
    one.look()
    fill(flight, 150)
    one.look()
    one.look()
    assert 1 == tries[0]
    assert "failing: disk_full" == one.note
    clock.advance(1.5)
    one.look()
    assert 2 == one.take_counts().value("telemetry_archive_errors_total", "disk_full")
    full[0] = False
    clock.advance(2.5)
    one.look()
    assert 150 == len(sequences(folder))
    assert "ok" == one.note


def test_a_fault_of_archiving_costs_the_archive_alone(fly: Fly, archiver: Make, folder: Path) -> None:
    """Whatever it raises: the exporter's start and stop go on."""

    def broken(_folder: Path, _parts: list[Part]) -> Path:
        raise ValueError("a fault of ours")

    flight, one = fly(), archiver(write=broken)
    fill(flight, 3)
    one.look(everything=True)
    one.stop()
    assert 2 == one.take_counts().value("telemetry_archive_errors_total", "internal")


def test_a_folder_that_cannot_be_made_is_counted(fly: Fly, archiver: Make, folder: Path) -> None:
    """A file in its way: the exporter goes on, and says so."""
    folder.parent.mkdir(parents=True)
    folder.touch()
    flight, one = fly(), archiver()
    fill(flight, 3)
    one.look(everything=True)
    assert 1 == one.take_counts().value("telemetry_archive_errors_total", "unwritable")
    assert not one.holds_back(flight.path.name)


def test_a_damaged_segment_costs_itself(fly: Fly, archiver: Make, folder: Path) -> None:
    """It is counted and left alone, and rows that their ring still holds are sealed once more."""
    flight = fly()
    fill(flight, 4)
    archiver().look(everything=True)
    (path,) = list_segments(folder)
    path.write_bytes(path.read_bytes()[:200])
    again = archiver()
    again.look(everything=True)
    assert 1 == again.take_counts().value("telemetry_archive_errors_total", "damaged")
    assert path.exists()
    path.unlink()
    assert 4 == len(sequences(folder))


def test_a_half_written_segment_is_removed(fly: Fly, archiver: Make, folder: Path) -> None:
    """What a kill left; its rows are sealed from the ring."""
    folder.mkdir(parents=True)
    (folder / f"{'1' * 19}-{'2' * 19}-01234567{PART_SUFFIX}").write_bytes(b"PK half")
    flight = fly()
    fill(flight, 2)
    archiver().look(everything=True)
    assert [] == list(folder.glob(f"*{PART_SUFFIX}"))
    assert 2 == len(sequences(folder))


def test_nothing_is_sealed_while_somebody_erases(fly: Fly, archiver: Make, folder: Path, clock: Clock) -> None:
    """What was read before the erasing must not be written after it."""
    flight, one = fly(), archiver()
    fill(flight, 5)
    with archive_lock(folder) as mine:
        assert mine
        one.look(everything=True)
        assert [] == sequences(folder)
    one.look(everything=True)
    assert 5 == len(sequences(folder))


def test_a_dead_worker_s_file_is_held_back_until_sealed(fly: Fly, archiver: Make, folder: Path) -> None:
    """Whoever wants to remove it makes the next look seal it."""
    flight, one = fly(), archiver()
    one.look()
    fill(flight, 3)
    flight.die()
    assert not one.holds_back("unknown.ring")
    one.look()
    assert one.holds_back(flight.path.name)
    one.look()
    assert 3 == len(sequences(folder))
    assert not one.holds_back(flight.path.name)


def test_rows_of_a_removed_file_are_still_sealed(fly: Fly, archiver: Make, folder: Path) -> None:
    """Through the descriptor that is open; then the file is let go."""
    flight, one = fly(), archiver()
    fill(flight, 3)
    one.look()
    name = flight.path.name
    flight.path.unlink()
    one.look(everything=True)
    assert 3 == len(sequences(folder))
    one.look()
    assert name not in one._rings


def test_a_damaged_ring_file_costs_its_own_rows(ring_dir: Path, fly: Fly, archiver: Make, folder: Path) -> None:
    """The others are sealed."""
    bad, good = fly(), fly()
    one = archiver()
    fill(bad, 2)
    fill(good, 2)
    one.look()
    os.truncate(bad.path, 100)
    (ring_dir / "00000000-0000000000000000.ring").write_bytes(b"no ring")
    one.look(everything=True)
    assert {good.path.name} == {ring for ring, _ in sequences(folder)}


DYING = """
import os, signal, sys
from pathlib import Path
from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits
from exporters.archive.sealing import write_segment

def die(unfinished, path):
    if sys.argv[3] == "after":
        os.replace(unfinished, path)
    os.kill(os.getpid(), signal.SIGKILL)

write = lambda folder, parts: write_segment(folder, parts, replace=die)
Archiver(Path(sys.argv[1]), Path(sys.argv[2]), Limits(rows=64), write=write).look(everything=True)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_in_the_middle_of_sealing_costs_and_doubles_nothing(
    ring_dir: Path, fly: Fly, archiver: Make, folder: Path, when: str
) -> None:
    """SIGKILL right before, or right after, a segment gets its name: each row is archived once in the end."""
    flights = [fly(), fly()]
    for _ in range(3):
        for flight in flights:
            fill(flight, 30)
        command = [sys.executable, "-c", DYING, str(ring_dir), str(folder), when]
        assert -signal.SIGKILL == subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode
    assert [] != list(folder.glob(f"*{PART_SUFFIX}")) or when == "after"
    archiver().look(everything=True)
    assert 180 == len(sequences(folder)) == len(set(sequences(folder)))
    assert [] == list(folder.glob(f"*{PART_SUFFIX}"))


def test_the_last_bytes_of_a_disk_are_left_to_others(fly: Fly, archiver: Make, folder: Path) -> None:
    """Nothing more is written, and nothing is removed: it is the evidence of what happens to the disk."""
    free = [10**9]
    flight, one = fly(), archiver(disk=lambda _folder: (10**10, 0, free[0]))
    fill(flight, 5)
    one.look(everything=True)
    free[0] = 60 << 20
    fill(flight, 5)
    one.look(everything=True)
    assert 5 == len(sequences(folder))
    assert 1 == one.take_counts().value("telemetry_archive_errors_total", "disk_full")
    free[0] = 65 << 20
    one.look(everything=True)
    assert 10 == len(sequences(folder))
