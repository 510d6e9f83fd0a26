"""Seals rows into segments before their rings overwrite them, on a clock and a thread of its own.

Reads the ring files itself, so that nothing which happens here reaches metrics or spans. Between two seals rows are in
the rings alone: there is no copy in memory that a kill could lose, or that erasing could not reach. How far each ring
file is archived stands in the segments themselves, so that after a kill no row is sealed twice.

Due       when enough rows wait, when they wait for long, or when a ring has gone half a lap since the last seal.
Bounded   a seal: by `Limits.rows`; the folder: as bounds.py says.
Error     what fails is counted by reason, said once, and tried again after a while; rows overwritten meanwhile are
          counted as lost to the archive.
"""

from __future__ import annotations

import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from exporters.archive.blocks import Part
from exporters.archive.bounds import Limits, check_room, keep_bounds
from exporters.archive.keys import remember_key
from exporters.archive.lock import archive_lock
from exporters.archive.sealing import write_segment
from exporters.archive.segment import PART_SUFFIX, READ_ERRORS, Segment, list_segments
from exporters.gauges import Gauges
from exporters.ring_folder import READ_ERRORS as RING_ERRORS
from exporters.totals import Totals
from probes.reader import RingFile, list_rings
from probes.row_check import join_rows

__all__ = ["Archiver"]

_log = logging.getLogger(__name__)

_READ_ROWS: Final = 8192
_MOST_SEALS_A_LOOK: Final = 64
# Encoding 32,768 rows takes about 0.1 s of CPU: on a disk that stays full it is not tried each second.
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Archiver:
    """Archives the rows of a folder of ring files."""

    def __init__(
        self,
        ring_dir: Path,
        folder: Path,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        now_unix_ns: Callable[[], int] = time.time_ns,
        write: Callable[[Path, list[Part]], Path] = write_segment,
        disk: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage,
    ) -> None:
        """Prepare; nothing is read or written before the first look.

        Args:
            ring_dir: Folder of ring files; it may come later.
            folder: Folder of segments; made when it is missing.
            limits: When to seal and what to keep.
            clock: Monotonic seconds.
            now_unix_ns: The clock that rows are dated by.
            write: Writes a segment.
            disk: Tells total, used and free bytes of the disk that a folder is on.
        """
        self.ring_dir = ring_dir
        self._folder = folder
        self._limits = limits
        self._clock = clock
        self._now = now_unix_ns
        self._write = write
        self._disk = disk
        self._rings: dict[str, RingFile] = {}
        # How far each ring file is archived, by its name; bounded by the files that there are.
        self._next: dict[str, int] = {}
        self._ready = False
        self._waiting_since: float | None = None
        self._pause, self._try_at = 0.0, float("-inf")
        self._failed = ""
        self._damaged: set[str] = set()
        # Ring files that somebody waits for; cleared at each look.
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._counts = Totals()
        self._gauges: Gauges = {}
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="exporter-archive", daemon=True)

    def start(self) -> None:
        """Look each second from a thread."""
        self._thread.start()

    def stop(self, within_seconds: float = 5.0) -> None:
        """Seal what waits: the ring files are memory, and the machine may go down next."""
        self._halt.set()
        if self._thread.ident is not None:
            self._thread.join(within_seconds)
        if not self._thread.is_alive():
            self.look(everything=True)
            self._close(list(self._rings))

    def look(self, *, everything: bool = False) -> None:
        """Seal what is due and remove what is over the bounds; raises nothing.

        Args:
            everything: Whether to seal all rows that wait, due or not.
        """
        if self._clock() < self._try_at and not everything:
            return
        try:
            with archive_lock(self._folder) as mine:
                # Somebody erases a session just now: the rows wait in their rings.
                if mine:
                    self._look_locked(everything)
        except OSError as error:
            self._fail("disk_full" if error.errno in _FULL else "unwritable", error)
        except Exception as error:  # noqa: BLE001 - rows are still counted and sent when archiving has a fault
            self._fail("internal", error)
        else:
            if self._failed:
                _log.warning("archiving again")
            self._failed, self._pause, self._try_at = "", 0.0, float("-inf")

    def holds_back(self, name: str) -> bool:
        """Return whether a ring file must stay until the next look because its rows are not archived yet.

        A failing archive holds nothing back: the folder of ring files is memory, and bounded.

        Args:
            name: The ring file's name.
        """
        ring = self._rings.get(name)
        if self._failed or not self._ready or ring is None:
            return False
        try:
            waits = ring.head() > self._next.get(name, 0)
        except RING_ERRORS:
            return False
        if waits:
            self._asked.add(name)
        return waits

    def take_counts(self) -> Totals:
        """Return what was counted since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Totals()
            return counts

    @property
    def note(self) -> str:
        """How archiving goes, for people: ok, or why not."""
        return f"failing: {self._failed}" if self._failed else "ok"

    def gauges(self) -> Gauges:
        """Return what the archive held at the last look; nothing before the first."""
        with self._lock:
            return self._gauges

    def _run(self) -> None:
        """Look until stopped."""
        while not self._halt.wait(1.0):
            self.look()

    def _look_locked(self, everything: bool) -> None:
        """Do one look; the archive's lock is held."""
        if not self._ready:
            self._resume()
        self._open_rings()
        everything = everything or bool(self._asked)
        self._asked.clear()
        for _ in range(_MOST_SEALS_A_LOOK):
            waiting = self._waiting()
            if not (sum(waiting.values()) and (everything or self._due(waiting))):
                break
            check_room(self._folder, self._disk)
            self._seal(waiting)
        self._keep_bounds()

    def _resume(self) -> None:
        """Learn from the segments how far each ring file is archived, and remove what a kill left half-written."""
        for path in self._folder.glob(f"*{PART_SUFFIX}"):
            path.unlink(missing_ok=True)
        for path in list_segments(self._folder):
            try:
                with Segment(path) as segment:
                    for name, next_seq in segment.ranges().items():
                        self._next[name] = max(next_seq, self._next.get(name, 0))
            except READ_ERRORS as error:
                # Left where it is: somebody may mend it, and retention takes it in the end. Its rows are sealed once
                # more if their rings still hold them.
                self._damage(path, error)
        for path in list_rings(self.ring_dir):
            # Rows that were overwritten before anybody archived were never promised to be kept.
            if path.name not in self._next and (ring := self._open(path)):
                self._next[path.name] = max(0, ring.head() - ring.layout.ring_rows)
        self._ready = True

    def _open_rings(self) -> None:
        """Open new ring files and close vanished ones; what those still held is read through the open descriptor."""
        paths = {path.name: path for path in list_rings(self.ring_dir)}
        for name, path in paths.items():
            self._open(path)
            self._next.setdefault(name, 0)
        for name in set(self._rings) - set(paths):
            if self._pending(name) == 0:
                self._close([name])

    def _open(self, path: Path) -> RingFile | None:
        """Return a ring file, opened once; None if it cannot be read: the follower says so."""
        if path.name not in self._rings:
            try:
                self._rings[path.name] = RingFile(path)
            except RING_ERRORS:
                return None
        return self._rings[path.name]

    def _close(self, names: Iterable[str]) -> None:
        for name in names:
            self._rings.pop(name).close()
            self._next.pop(name, None)

    def _pending(self, name: str) -> int:
        """Return how many rows of a ring file wait."""
        try:
            return max(0, self._rings[name].head() - self._next[name])
        except RING_ERRORS:
            return 0

    def _waiting(self) -> dict[str, int]:
        """Return how many rows of each ring file wait."""
        return {name: self._pending(name) for name in self._rings}

    def _due(self, waiting: dict[str, int]) -> bool:
        """Return whether it is time to seal."""
        now = self._clock()
        if self._waiting_since is None:
            self._waiting_since = now
        return (
            sum(waiting.values()) >= self._limits.rows
            or now - self._waiting_since >= self._limits.seconds
            # Half a lap: the other half is the time that a look-up, or a full disk, may take.
            or any(rows * 2 >= self._rings[name].layout.ring_rows for name, rows in waiting.items())
        )

    def _seal(self, waiting: dict[str, int]) -> None:
        """Write one segment of the rows that wait.

        Raises:
            OSError: If it cannot be written; the rows wait on.
        """
        parts: list[Part] = []
        room, lost = self._limits.rows, {"overwritten": 0, "torn": 0}
        # The ring that is nearest to overwriting its rows first.
        order = sorted(waiting, key=lambda name: -waiting[name] / self._rings[name].layout.ring_rows)
        for name in order:
            if waiting[name] and room > 0:
                try:
                    part = self._read(name, room, lost)
                except RING_ERRORS as error:
                    _log.warning("ring file not archived: %s", error)
                    # Given up, or it would be due at each look; its rows are lost to the archive.
                    self._next[name] += waiting[name]
                    lost["torn"] += waiting[name]
                    continue
                room -= len(part.rows)
                parts.append(part)
        filled = [part for part in parts if len(part.rows)]
        if filled:
            remember_key(self._folder, self.ring_dir)
            self._write(self._folder, filled)
        # Only now: a write that failed leaves the rows waiting.
        self._next |= {part.ring: part.next_seq for part in parts}
        self._waiting_since = None
        with self._lock:
            self._counts.add("telemetry_archive_rows_total", (), sum(len(part.rows) for part in parts))
            for reason, rows in lost.items():
                self._counts.add("telemetry_archive_rows_lost_total", (reason,), rows)

    def _read(self, name: str, room: int, lost: dict[str, int]) -> Part:
        """Return rows of a ring file that wait, as many as there is room for."""
        ring, cursor = self._rings[name], self._next[name]
        stop = min(ring.head(), cursor + room)
        batches = []
        while cursor < stop:
            batch = ring.read(cursor, min(_READ_ROWS, stop - cursor))
            cursor = batch.cursor
            batches.append(batch)
            # The schema may grow between two reads; then the segment holds what was read before.
            if batch.rows.dtype != batches[0].rows.dtype:
                cursor = batches[-2].cursor
                batches.pop()
                break
        lost["overwritten"] += sum(batch.lost for batch in batches)
        lost["torn"] += sum(batch.torn for batch in batches)
        rows: Any = join_rows([batch.rows for batch in batches]) if batches else ring.read(cursor, 0).rows
        return Part(name, ring.header, ring.strings(), rows, cursor)

    def _keep_bounds(self) -> None:
        """Remove what is over the bounds, and tell what is left."""
        holding = keep_bounds(self._folder, self._limits, self._now())
        gauges: Gauges = {"telemetry_archive_bytes": {(): float(holding.used_bytes)}}
        if holding.oldest_unix_ns is not None:
            gauges["telemetry_archive_oldest_timestamp_seconds"] = {(): holding.oldest_unix_ns / 1e9}
        with self._lock:
            self._gauges = gauges

    def _damage(self, path: Path, error: Exception) -> None:
        """Count a damaged segment, once."""
        if path.name not in self._damaged:
            self._damaged.add(path.name)
            _log.warning("segment cannot be read: %s", error)
            with self._lock:
                self._counts.add("telemetry_archive_errors_total", ("damaged",), 1)

    def _fail(self, reason: str, error: Exception) -> None:
        """Count a failure, say it once, and wait before the next try."""
        with self._lock:
            self._counts.add("telemetry_archive_errors_total", (reason,), 1)
        if self._failed != reason:
            _log.warning("not archived (%s): %s; rows stay in their rings until these have gone round", reason, error)
        self._failed = reason
        self._pause = min(_LONGEST_PAUSE_SECONDS, max(1.0, self._pause * 2))
        self._try_at = self._clock() + self._pause
