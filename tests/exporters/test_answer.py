from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from exporters import lookup
from exporters.answer import Question, answer
from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits
from exporters.archive.reader import Archive
from exporters.archive.segment import list_segments
from exporters.rows import load_rows

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

MINE, OTHERS = "mine-0123456789abcdef", "others-0123456789abc"
START = 1_700_000_000_000_000_000
Fly = Callable[..., "Flight"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The archive."""
    return tmp_path / "archive"


@pytest.fixture
def flown(ring_dir: Path, folder: Path, fly: Fly) -> Flight:
    """A ring of 64 rows that went round seven times, archived by half laps but for the last 42 rows.

    The oldest row that the ring holds lies in the middle of a sealed block.
    """
    flight = fly(START, ring_rows=64)
    archiver = Archiver(ring_dir, folder, Limits(keep_seconds=10**9))
    for number in range(490):
        flight.row(
            session=MINE if number in (0, 200, 479) else OTHERS,
            duration_ns=1_000_000 + number if number != 100 else 9_000_000_000,
            outcome=2 if number % 100 == 50 else 1 if number % 7 == 3 else 0,
            trace_lo=number,
            stages={"model.forward": (10, 500)},
        )
        if number % 32 == 31 and number < 470:
            archiver.look()
    archiver._close(list(archiver._rings))
    return flight


def test_a_session_is_found_in_rings_and_archive(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """Hours later, each request once and by time, as the ring would have shown it."""
    found = answer(Question(session_id=MINE), ring_dir, folder)
    assert [START, START + 200_000_000, START + 479_000_000] == [view.start_unix_ns for view in found.traces]
    assert ("found", ("ring", "archive"), START) == (found.result, found.sources, found.kept_since_unix_ns)
    assert 1 == len(lookup.find_session(ring_dir, MINE))


def test_the_archive_shows_a_request_as_its_ring_did(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """All of it: spans, attributes, texts, worker."""
    by_ring = lookup.find_trace(ring_dir, f"{0xABCD:016x}{440:016x}")
    flown.path.unlink()
    by_archive = lookup.find_trace(ring_dir, f"{0xABCD:016x}{440:016x}", archive=Archive(folder))
    assert 1 == len(by_ring)
    assert [view.to_dict() for view in by_ring] == [view.to_dict() for view in by_archive]


def test_a_trace_is_found_in_the_archive(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """By both halves of its id."""
    found = answer(Question(trace_id=f"{0xABCD:016x}{7:016x}"), ring_dir, folder)
    assert [START + 7_000_000] == [view.start_unix_ns for view in found.traces]
    assert "not_found" == answer(Question(trace_id=f"{0xABCE:016x}{7:016x}"), ring_dir, folder).result


def test_the_slowest_and_the_errors_are_those_of_all_rows(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """Not of the rings alone; in the order that the rings have."""
    slow = answer(Question(slow=3), ring_dir, folder).traces
    assert [9_000_000_000, 1_000_489, 1_000_488] == [round(view.duration_s * 1e9) for view in slow]
    faults = lookup.errors(ring_dir, 6, archive=Archive(folder))
    assert [450, 350, 250, 150, 50, 486] == [int(view.trace_id[16:], 16) for view in faults]
    late = lookup.errors(ring_dir, 9, START + 300_000_000, archive=Archive(folder))
    assert [450, 350] == [int(view.trace_id[16:], 16) for view in late if view.outcome == "error"]
    assert [] == lookup.slowest(ring_dir, 0, archive=Archive(folder))


def test_a_table_of_hours_holds_each_row_once(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """Rows that ring and archive both have are not doubled; a window takes what lies in it."""
    table = load_rows(ring_dir, archive_dir=folder)
    assert list(range(490)) == table["seq"].tolist()
    assert {"positive"} == set(table["label"].tolist())
    assert 490 == int((table.stage("model.forward")[1] == 5e-7).sum())
    window = load_rows(ring_dir, START + 99_500_000, START + 120_000_000, archive_dir=folder)
    assert list(range(99, 121)) == window["seq"].tolist()
    assert 64 == len(load_rows(ring_dir))


def test_a_removed_ring_is_still_found(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """A worker that died long ago, and whose file aged out, is in the archive alone."""
    flown.path.unlink()
    assert 2 == len(answer(Question(session_id=MINE), ring_dir, folder).traces)
    assert 448 == len(load_rows(ring_dir, archive_dir=folder))


def test_sessions_of_an_earlier_boot_are_found(ring_dir: Path, folder: Path, flown: Flight, fly: Fly) -> None:
    """The ring folder's key goes with the machine's memory; the archive keeps it as long as its rows."""
    flown.die()
    for path in ring_dir.iterdir():
        path.unlink()
    fly(START + 10**12).row(session=MINE)
    assert [START, START + 200_000_000, START + 10**12] == [
        view.start_unix_ns for view in answer(Question(session_id=MINE), ring_dir, folder).traces
    ]


def test_older_than_retention_is_not_never_there(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """Told apart by the time that was asked for, for ids alone."""
    absent = "absent-0123456789abcd"
    assert "not_found" == answer(Question(session_id=absent), ring_dir, folder).result
    assert "not_found" == answer(Question(session_id=absent, since_ns=START), ring_dir, folder).result
    older = answer(Question(session_id=absent, since_ns=START - 1), ring_dir, folder)
    assert "older_than_retention" == older.result
    assert "2023-11-14T22:13:20.000000Z" == older.about()["kept_since"]
    assert "found" == answer(Question(session_id=MINE, since_ns=START - 1), ring_dir, folder).result
    assert "not_found" == answer(Question(errors=True, since_ns=START + 10**12), ring_dir, folder).result
    # Without the archive, the rows of the ring are all that is kept.
    assert "older_than_retention" == answer(Question(trace_id="0" * 31 + "7", since_ns=START), ring_dir).result


def test_nothing_kept_is_told(ring_dir: Path, folder: Path) -> None:
    """No rows at all: not found, and no time from which."""
    empty = answer(Question(session_id=MINE, since_ns=5), ring_dir, folder)
    assert {"sources": ["ring"], "result": "not_found", "kept_since": None, "unreadable": []} == empty.about()


def test_what_could_not_be_read_is_told(ring_dir: Path, folder: Path, flown: Flight) -> None:
    """A damaged segment costs its rows, and the answer says which."""
    first = list_segments(folder)[0]
    first.write_bytes(b"")
    found = answer(Question(session_id=MINE), ring_dir, folder)
    assert 2 == len(found.traces)
    assert [first.name] == [one["segment"] for one in found.about()["unreadable"]]
    assert 1 == load_rows(ring_dir, archive_dir=folder).losses["segments"]
    for question in (Question(trace_id="0" * 32), Question(slow=3), Question(errors=True)):
        assert first.name in answer(question, ring_dir, folder).unreadable


@pytest.mark.parametrize("odd", ["", "\udcff", "'; --", "x" * 10_000, "日本", "a\nb\0"])
def test_any_session_id_is_safe(ring_dir: Path, folder: Path, flown: Flight, odd: str) -> None:
    """Not found, no error."""
    assert [] == answer(Question(session_id=odd), ring_dir, folder).traces
