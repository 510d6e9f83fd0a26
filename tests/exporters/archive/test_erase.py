from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from exporters.archive.archiver import Archiver
from exporters.archive.erase import ArchiveBusyError, Erased, erase
from exporters.archive.lock import archive_lock
from exporters.archive.reader import Archive
from exporters.archive.segment import PART_SUFFIX, Segment, list_segments
from exporters.lookup import find_session, find_trace
from exporters.rows import load_rows

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

MINE, OTHERS = "mine-0123456789abcdef", "others-0123456789abc"


@pytest.fixture
def sealed(fly: Callable[..., Flight], archiver: Callable[..., Archiver]) -> Flight:
    """Two segments of two workers' rows; the rings go away."""
    flights = [fly(), fly(service="other")]
    one = archiver()
    for _ in range(2):
        for flight in flights:
            for _ in range(3):
                flight.row(session=MINE)
                flight.row(session=OTHERS)
        one.look(everything=True)
    for flight in flights:
        flight.path.unlink()
    return flights[0]


def test_a_session_is_gone_and_its_measurements_stay(ring_dir: Path, folder: Path, sealed: Flight) -> None:
    """Id and hash are masked in every segment; nobody else's rows change, and no copy of the id is left in a file."""
    others = [view.to_dict() for view in find_session(ring_dir, OTHERS, archive=Archive(folder))]
    done = erase(folder, ring_dir, MINE)
    assert Erased(rows=12, segments=2) == done
    assert [] == find_session(ring_dir, MINE, archive=Archive(folder))
    assert others == [view.to_dict() for view in find_session(ring_dir, OTHERS, archive=Archive(folder))]
    table = load_rows(ring_dir, archive_dir=folder)
    assert {"", OTHERS} == set(table["session"].tolist())
    assert (24, 12) == (len(table), int((table["session_hash"] == 0).sum()))
    for path in list_segments(folder):
        with Segment(path) as segment:
            assert not any(MINE.encode() in part.rows.tobytes() for part in segment.parts())


def test_the_trace_is_still_found_without_its_session(ring_dir: Path, folder: Path, sealed: Flight) -> None:
    """Masked, it is a measurement of nobody."""
    trace_id = find_session(ring_dir, MINE, archive=Archive(folder))[0].trace_id
    erase(folder, ring_dir, MINE)
    assert {""} == {view.session_id for view in find_trace(ring_dir, trace_id, archive=Archive(folder))}


def test_erasing_twice_does_no_harm(ring_dir: Path, folder: Path, sealed: Flight, tmp_path: Path) -> None:
    """Nor does erasing what is not there, or where there is no archive."""
    erase(folder, ring_dir, MINE)
    before = {path: path.read_bytes() for path in list_segments(folder)}
    assert Erased() == erase(folder, ring_dir, MINE) == erase(folder, ring_dir, "absent-0123456789abcd")
    assert before == {path: path.read_bytes() for path in list_segments(folder)}
    assert Erased() == erase(tmp_path / "nowhere", ring_dir, MINE)
    assert not (tmp_path / "nowhere").exists()


def test_an_archive_knows_its_rings_after_erasing(
    ring_dir: Path, folder: Path, fly: Callable[..., Flight], archiver: Callable[..., Archiver]
) -> None:
    """The exporter's next start does not seal the erased rows once more."""
    flight = fly()
    flight.row(session=MINE)
    archiver().look(everything=True)
    erase(folder, ring_dir, MINE)
    archiver().look(everything=True)
    assert 1 == len(list_segments(folder))


def test_a_segment_that_cannot_be_read_is_told(ring_dir: Path, folder: Path, sealed: Flight) -> None:
    """It may still hold the session: whoever erases must know."""
    first, second = list_segments(folder)
    first.write_bytes(first.read_bytes()[:-30])
    done = erase(folder, ring_dir, MINE)
    assert {first.name} == set(done.unreadable)
    assert (6, 1) == (done.rows, done.segments)
    assert second.exists()


def test_what_a_kill_left_half_written_goes_too(ring_dir: Path, folder: Path, sealed: Flight) -> None:
    """It can hold the session, and nobody will read it."""
    half = folder / f"{'1' * 19}-{'2' * 19}-01234567{PART_SUFFIX}"
    half.write_bytes(MINE.encode())
    erase(folder, ring_dir, MINE)
    assert not half.exists()


def test_a_busy_archive_is_told(ring_dir: Path, folder: Path, sealed: Flight) -> None:
    """One line with the mend, after the patience."""
    with archive_lock(folder), pytest.raises(ArchiveBusyError, match="try again"):
        erase(folder, ring_dir, MINE, patience_seconds=0.05)
