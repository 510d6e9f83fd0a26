"""Takes a session out of a ring file in place: its id and its hash go, the measurements of its requests stay.

The writer takes no lock, so the eraser keeps out of its way. In a living worker's file it touches only
- rows that the writer does not reach within about a second, judged by how fast it goes, and by 64 rows at least;
- open slots that are free.
What is nearer, and requests in flight, are waited for and else reported. What is left of a race (the eraser stopped by
the scheduler for longer than that, between looking and writing) costs one new row, which fails its CRC and is counted
as torn, or hides one request in flight from look-up until it ends; it never reaches the service.

Source    docs/row-format.md: an eraser writes body, CRC and hash anew and leaves the commit word.
Cost      one read of the file (16 MiB, 10 ms), and one write a row.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from probes.layout import FRAME, OPEN_SLOT_BYTES, OPEN_STATE_BUSY
from probes.open_slots import OPEN_DTYPE
from probes.reader import RingFile
from probes.schema import FIXED_COLUMNS, compile_revision

__all__ = ["ErasedRing", "erase_session"]

SECTION_BYTES: Final = 1 << 20
LEAST_DISTANCE_ROWS: Final = 64
OBSERVE_SECONDS: Final = 0.1
# id and hash lie side by side in a slot, so that one write takes both out
SLOT_OFFSET: Final = 56
SLOT_BLANK: Final = bytes(8 + 32)
FIXED: Final = compile_revision(FIXED_COLUMNS).dtype


@dataclass(slots=True)
class ErasedRing:
    """What was done to one file.

    Attributes:
        rows: Rows whose session was taken out.
        slots: Open slots whose session was taken out: requests that never ended, and traces of those that did.
        waiting: Rows left alone because the writer is about to overwrite them.
        in_flight: Requests of the session that have not ended.
        elsewhere: Places of the file that hold the id as a text of the program's own, which an eraser cannot judge.
    """

    rows: int = 0
    slots: int = 0
    waiting: int = 0
    in_flight: int = 0
    elsewhere: int = 0

    @property
    def left(self) -> int:
        """How much was not reached."""
        return self.waiting + self.in_flight + self.elsewhere


def erase_session(
    path: Path,
    hashes: Collection[int],
    session: bytes = b"",
    patience_seconds: float = 3.0,
    sleep: Callable[[float], None] = time.sleep,
) -> ErasedRing:
    """Take a session out of a ring file; doing so twice does no harm.

    Args:
        path: The ring file.
        hashes: Its hashes (`probes.folder.session_hashes`).
        session: Its id as stored; b"" when only the hash is known.
        patience_seconds: How long to wait for the writer to get out of the way.
        sleep: Waits so many seconds.

    Raises:
        NotARing, UnknownVersion: If it is no ring file that we know.
        OSError: If it cannot be written.
    """
    done = ErasedRing()
    with RingFile(path) as ring:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            eraser = _Eraser(ring, fd, np.array(sorted(hashes), dtype=np.uint64), session)
            for _ in range(max(1, round(patience_seconds / (2 * OBSERVE_SECONDS)))):
                eraser.observe(sleep)
                eraser.erase(done)
                if not done.waiting and not done.in_flight:
                    break
                sleep(OBSERVE_SECONDS)
            done.elsewhere = eraser.elsewhere()
        finally:
            os.close(fd)
    return done


class _Eraser:
    """One file, opened twice: for reading as readers do, and for writing."""

    def __init__(self, ring: RingFile, fd: int, hashes: npt.NDArray[np.uint64], session: bytes) -> None:
        self._ring, self._fd, self._hashes, self._session = ring, fd, hashes, session
        self._layout = ring.layout
        # the fixed columns begin every revision, so that these offsets hold for old rows as well
        places: Mapping[str, tuple[Any, ...]] = FIXED.fields or {}
        self._hash_at, self._session_at = (FRAME.size + int(places[name][1]) for name in ("session_hash", "session"))
        self._alive = True
        self._distance = 0

    def observe(self, sleep: Callable[[float], None]) -> None:
        """Look how fast the writer goes: its rows of about one second are left alone."""
        self._alive = self._ring.owner_alive()
        if self._alive:
            before = self._ring.head()
            sleep(OBSERVE_SECONDS)
            second = round((self._ring.head() - before) / OBSERVE_SECONDS)
            self._distance = max(second, min(LEAST_DISTANCE_ROWS, self._layout.ring_rows // 8))

    def erase(self, done: ErasedRing) -> None:
        """Go through slots and rows once."""
        done.in_flight = done.waiting = 0
        # slots first: a request that ends meanwhile is then found among the rows
        for at, busy in self._open_slots():
            if self._alive and busy:
                done.in_flight += 1
            else:
                os.pwrite(self._fd, SLOT_BLANK, at + SLOT_OFFSET)
                done.slots += 1
        for slot in self._rows():
            if self._alive and not self._out_of_reach(slot):
                done.waiting += 1
            else:
                self._erase_row(slot)
                done.rows += 1

    def elsewhere(self) -> int:
        """Return how often the id stands in the status page, the journal and the string table."""
        if len(self._session) < 16:
            # a short text that is no id of ours occurs by chance
            return 0
        size = self._layout.open - self._layout.status
        return os.pread(self._fd, size, self._layout.status).count(self._session)

    def _open_slots(self) -> Iterator[tuple[int, bool]]:
        """Yield place and state of the slots that bear the session, the scratch slot among them."""
        count = self._layout.open_slots + 1
        slots = np.frombuffer(os.pread(self._fd, count * OPEN_SLOT_BYTES, self._layout.open), OPEN_DTYPE)
        for index in np.flatnonzero(self._matches(slots["session_hash"], slots["session"])):
            # the scratch slot is marked busy by its last user and stays so: it is nobody's
            busy = bool(slots["state"][index] == OPEN_STATE_BUSY and index < self._layout.open_slots)
            yield self._layout.open + int(index) * OPEN_SLOT_BYTES, busy

    def _rows(self) -> Iterator[int]:
        """Yield the slots of the ring whose bytes bear the session, be they a whole row or what a kill left of one."""
        size, step = self._layout.row_bytes, max(1, SECTION_BYTES // self._layout.row_bytes)
        for first in range(0, self._layout.ring_rows, step):
            count = min(step, self._layout.ring_rows - first)
            raw = os.pread(self._fd, count * size, self._layout.ring + first * size)
            flat = np.frombuffer(raw, np.uint8).reshape(count, size)
            hashed = np.ascontiguousarray(flat[:, self._hash_at : self._hash_at + 8]).view("<u8")[:, 0]
            named = np.ascontiguousarray(flat[:, self._session_at : self._session_at + 32]).view("S32")[:, 0]
            column = np.frombuffer(os.pread(self._fd, 8 * count, self._layout.hashes + 8 * first), "<u8")
            hits = self._matches(hashed, named) | np.isin(column, self._hashes)
            yield from (first + int(index) for index in np.flatnonzero(hits))

    def _matches(self, hashed: npt.NDArray[np.uint64], named: npt.NDArray[np.bytes_]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.isin(hashed, self._hashes)
        return found | (named == self._session) if self._session else found

    def _out_of_reach(self, slot: int) -> bool:
        """Return whether the writer comes to this slot late enough."""
        head, rows = self._ring.head(), self._layout.ring_rows
        return (slot - head) % rows >= self._distance

    def _erase_row(self, slot: int) -> None:
        at = self._layout.ring + slot * self._layout.row_bytes
        raw = bytearray(os.pread(self._fd, self._layout.row_bytes, at))
        _, crc, _, length = FRAME.unpack_from(raw)
        end = FRAME.size + length
        whole = end <= len(raw) and zlib.crc32(raw[FRAME.size : end]) == crc
        raw[self._hash_at : self._hash_at + 8] = bytes(8)
        raw[self._session_at : self._session_at + 32] = bytes(32)
        if whole:
            raw[8:12] = zlib.crc32(raw[FRAME.size : end]).to_bytes(4, "little")
        # in one write behind the commit word: a reader that sees half of it reads the row once more
        os.pwrite(self._fd, raw[8 : max(end, self._session_at + 32) if whole else None], at + 8)
        os.pwrite(self._fd, bytes(8), self._layout.hashes + 8 * slot)
