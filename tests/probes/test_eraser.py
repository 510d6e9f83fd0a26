"""A session is taken out of ring files of the dead and of the living, and nothing else changes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from probes import RecorderSettings
from probes.eraser import erase_session
from probes.folder import session_hash
from probes.layout import FRAME
from probes.plan import FIXED_INDEX
from probes.reader import NotARing, RingFile
from probes.ringfile import OwnedRing, open_ring
from probes.settings import Identity

ME = b"abcdefghijklmnop1234"
YOU = b"zyxwvutsrqponmlk9876"


def owned(folder: Path, **sizes: int) -> OwnedRing:
    """Return a new ring of that folder."""
    settings = RecorderSettings(**{"ring_rows": 256, "row_bytes": 1024, "open_slots": 4, **sizes})  # type: ignore[arg-type]
    return open_ring(folder, "test", Identity(host="h"), settings, lambda _: None)


def ids(ring: OwnedRing, session: bytes) -> tuple[Any, ...]:
    """Return what an open slot holds of a request."""
    return (1, 2, 3, 0, 1_700_000_000_000_000_000, session_hash(ring.key, session), session, 0, 0, 0, 0)


def put(ring: OwnedRing, session: bytes, tokens: int = 5) -> None:
    """Commit a row of that session."""
    row = ring.writer.plan.template.copy()
    row[FIXED_INDEX["session"]], row[FIXED_INDEX["tokens"]] = session, tokens
    row[FIXED_INDEX["session_hash"]] = session_hash(ring.key, session)
    ring.writer.commit(row, ring.writer.begin(ids(ring, session)))


def path_of(ring: OwnedRing) -> Path:
    """Return the ring's file."""
    assert ring.path is not None
    return ring.path


def rows(path: Path) -> list[tuple[bytes, int]]:
    """Return session and tokens of each valid row."""
    with RingFile(path) as reader:
        batch = reader.read(0, 1 << 20)
        assert 0 == batch.torn
        # a row without an id of its own bears its trace id
        return [(s if (s := bytes(row["session"])) in (ME, YOU) else b"", int(row["tokens"])) for row in batch.rows]


def no_wait(_seconds: float) -> None:
    """Do not wait."""


@pytest.mark.parametrize("dead", [True, False])
def test_a_session_goes_and_its_measurements_stay(tmp_path: Path, dead: bool) -> None:
    """Id, hash and hash column are blank, all rows are whole, others are untouched; again changes nothing."""
    ring = owned(tmp_path / "r")
    for number in range(20):
        put(ring, ME if number % 3 == 0 else YOU, number)
    path, hashes = path_of(ring), [session_hash(ring.key, ME)]
    if dead:
        ring.close()

    done = erase_session(path, hashes, ME, sleep=no_wait)
    again = erase_session(path, hashes, ME, sleep=no_wait)

    assert [(b"" if number % 3 == 0 else YOU, number) for number in range(20)] == rows(path)
    assert (7, 0, 0, 0) == (done.rows, done.waiting, done.in_flight, done.elsewhere)
    assert (0, 0) == (again.rows, again.slots)
    assert ME not in path.read_bytes()
    with RingFile(path) as reader:
        assert 0 == len(reader.find_hash(hashes[0]))
    ring.close()


def test_the_hash_alone_is_enough(tmp_path: Path) -> None:
    """An id that was no valid one was never stored: its rows are found by the keyed hash."""
    ring = owned(tmp_path / "r")
    put(ring, ME)

    assert 1 == erase_session(path_of(ring), [session_hash(ring.key, ME)], sleep=no_wait).rows
    assert [(b"", 5)] == rows(path_of(ring))
    ring.close()


def test_an_open_request_of_a_dead_worker_is_masked(tmp_path: Path) -> None:
    """It never ended, and is still shown as such, without whose it was."""
    ring = owned(tmp_path / "r")
    ring.writer.begin(ids(ring, ME))
    path = path_of(ring)
    ring.close()

    done = erase_session(path, [session_hash(ring.key, ME)], ME, sleep=no_wait)

    assert (1, 0) == (done.slots, done.in_flight)
    with RingFile(path) as reader:
        (slot,) = reader.open_slots()
    assert 0 == slot["session_hash"]
    assert ME not in path.read_bytes()


def test_a_request_in_flight_is_waited_for_and_told(tmp_path: Path) -> None:
    """What a living writer holds is not touched; once it has ended its row is reached."""
    ring = owned(tmp_path / "r")
    at = ring.writer.begin(ids(ring, ME))
    hashes = [session_hash(ring.key, ME)]

    assert 1 == erase_session(path_of(ring), hashes, ME, sleep=no_wait).in_flight
    ring.writer.release(at)
    done = erase_session(path_of(ring), hashes, ME, sleep=no_wait)

    assert (1, 0) == (done.slots, done.in_flight)
    assert ME not in path_of(ring).read_bytes()
    ring.close()


def test_rows_that_a_living_writer_is_about_to_overwrite_are_left_to_it(tmp_path: Path) -> None:
    """The oldest rows of a full ring wait; a dead worker's do not."""
    ring = owned(tmp_path / "r")
    for number in range(256 + 10):
        put(ring, ME, number)
    hashes, path = [session_hash(ring.key, ME)], path_of(ring)

    alive = erase_session(path, hashes, ME, sleep=no_wait)
    ring.close()
    dead = erase_session(path, hashes, ME, sleep=no_wait)

    assert (256 - 32, 32) == (alive.rows, alive.waiting)
    assert (32, 0) == (dead.rows, dead.waiting)
    assert [b""] * 256 == [session for session, _ in rows(path)]


def test_what_a_kill_left_of_a_row_is_blanked_too(tmp_path: Path) -> None:
    """Bytes that no reader takes for a row hold the id all the same."""
    ring = owned(tmp_path / "r")
    put(ring, ME)
    path = path_of(ring)
    with RingFile(path) as reader:
        at = reader.layout.ring
    ring.close()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(FRAME.pack(1, 12345, 0, 100))

    done = erase_session(path, [session_hash(ring.key, ME)], ME, sleep=no_wait)

    assert 1 == done.rows
    assert ME not in path.read_bytes()


def test_an_id_in_a_text_of_the_program_is_told(tmp_path: Path) -> None:
    """A label that holds the id cannot be judged here; whoever asks must know that it is there."""
    ring = owned(tmp_path / "r")
    ring.writer.strings.add(ME.decode())

    assert 1 == erase_session(path_of(ring), [session_hash(ring.key, ME)], ME, sleep=no_wait).elsewhere
    ring.close()


def test_what_is_no_ring_is_refused(tmp_path: Path) -> None:
    """A foreign file is not written to."""
    path = tmp_path / "x.ring"
    path.write_bytes(ME * 1000)

    with pytest.raises(NotARing):
        erase_session(path, [1], ME)
    assert ME * 1000 == path.read_bytes()


def test_a_busy_writer_loses_nothing_to_an_eraser(tmp_path: Path) -> None:
    """While rows are written, others are erased: every row of the end is whole, and the session is gone."""
    ring = owned(tmp_path / "r", ring_rows=8192)
    last = 10_000

    def write() -> None:
        for number in range(last):
            put(ring, ME if number % 7 == 0 and number < 7_500 else YOU, number)
            # some thousand rows a second: the eraser keeps a second away
            if number % 10 == 9:
                time.sleep(0.001)

    thread = threading.Thread(target=write)
    thread.start()
    hashes = [session_hash(ring.key, ME)]
    while thread.is_alive():
        erase_session(path_of(ring), hashes, ME, patience_seconds=0.0)
    thread.join()
    done = erase_session(path_of(ring), hashes, ME)

    with RingFile(path_of(ring)) as reader:
        batch = reader.read(0, 1 << 20)
    assert (8192, 0) == (len(batch.rows), batch.torn)
    assert list(range(last - 8192, last)) == batch.rows["tokens"].tolist()
    assert done.waiting == int((batch.rows["session"] == ME).sum())
    assert done.waiting <= 64
    ring.close()
