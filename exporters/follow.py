"""Follows all ring files of a folder: discovers them, drains dead workers, keeps a bounded number as last flights.

Cost      one directory listing, and per file one flock, a binary search of 15 small reads, and the new rows.
Error     a file that cannot be read costs that file, is counted as unreadable and named once in the log.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from exporters.aggregate import aggregate
from exporters.ring_folder import READ_ERRORS
from exporters.rows import OpenRequest, open_requests
from exporters.state import RingState, State
from exporters.status_page import cumulative
from exporters.totals import Totals
from probes.folder import is_locked
from probes.reader import Header, RingFile, list_rings

__all__ = ["Followed", "Follower", "Tap"]

Rows = npt.NDArray[Any]

_log = logging.getLogger(__name__)

# Stands for the folder itself among the unreadable names.
_FOLDER: Final = "."
_READ_ROWS: Final = 8192
# A full ring of the default size is read in one tick; a larger one in several, so that a scrape is never kept long.
_MOST_ROWS_A_TICK: Final = 65_536


class Tap(Protocol):
    """What else wants the rows; returns what to add to the totals."""

    def offer(self, header: Header, rows: Rows, strings: Sequence[str]) -> Totals:
        """Take new rows."""

    def offer_unfinished(self, header: Header, requests: Sequence[OpenRequest], ended_unix_ns: int) -> Totals:
        """Take the requests that a dead worker never ended."""


@dataclass
class Followed:
    """One ring file that is open.

    Attributes:
        ring: The file.
        name: Its name, the key of its state.
        state: How far it was counted.
        alive: Whether its worker lived at the last look.
        unread: Rows that were left for the next look.
        status: The worker's last status page.
        open_starts: Start of each request in flight, ns since 1970.
    """

    ring: RingFile
    name: str
    state: RingState
    alive: bool = True
    unread: int = 0
    status: dict[str, Any] | None = None
    open_starts: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))


class Follower:
    """Adds what workers write to the totals, each row once."""

    def __init__(
        self,
        ring_dir: Path,
        state: State,
        *,
        without_state: bool,
        tap: Tap | None = None,
        last_flight_files: int = 16,
        last_flight_bytes: int = 512 << 20,
        holds_back: Callable[[str], bool] | None = None,
        now_unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Prepare; `tick` looks.

        Args:
            ring_dir: Folder of ring files; it may come later.
            state: Cursors and totals, changed in place.
            without_state: Nothing is known about the files that are there: start at their heads, count what is skipped.
            tap: Also gets all new rows, and the requests that dead workers never ended.
            last_flight_files: Files of dead workers that are kept.
            last_flight_bytes: Bytes that these may take.
            holds_back: Told a file's name, whether somebody still has to read it before it is removed.
            now_unix_ns: The clock.
        """
        self.ring_dir = ring_dir
        self.state = state
        self.unreadable: set[str] = set()
        self.followed: dict[str, Followed] = {}
        self._skip_existing = without_state
        self._tap = tap
        self._last_flight_files = last_flight_files
        self._last_flight_bytes = last_flight_bytes
        self._holds_back = holds_back
        self._now = now_unix_ns
        # How much of a ring the last tick read, at most: 1 is a whole lap.
        self.laps_read = 0.0

    def tick(self) -> None:
        """Look at all files once."""
        self.laps_read = 0.0
        try:
            paths = {path.name: path for path in list_rings(self.ring_dir)}
        except OSError as error:
            # Not allowed in, or no descriptor left: nothing is known of the files, so that nothing may be concluded.
            if _FOLDER not in self.unreadable:
                _log.warning("%s cannot be read: %s", self.ring_dir, error.strerror)
            self.unreadable.add(_FOLDER)
            return
        self._discover(paths)
        for followed in list(self.followed.values()):
            try:
                self._follow(followed)
            except READ_ERRORS as error:
                self._lose(followed, f"ring file left out: {error}")
        self._forget_vanished(set(paths))
        self._age_out(paths)

    def close(self) -> None:
        """Close all files."""
        for followed in self.followed.values():
            followed.ring.close()
        self.followed.clear()

    def _discover(self, paths: dict[str, Path]) -> None:
        """Open the files that are new."""
        self.unreadable &= set(paths)
        for name, path in paths.items():
            if name in self.followed:
                continue
            try:
                ring = RingFile(path)
            except READ_ERRORS as error:
                if name not in self.unreadable:
                    _log.warning("ring file left out: %s", error)
                self.unreadable.add(name)
                continue
            try:
                known = self.state.rings.get(name)
                state = known or (self._at_head(ring) if self._skip_existing else RingState())
            except READ_ERRORS as error:
                ring.close()
                _log.warning("ring file left out: %s", error)
                self.unreadable.add(name)
                continue
            self.unreadable.discard(name)
            self.state.rings[name] = state
            self.followed[name] = Followed(ring, name, state)
        self._skip_existing = False
        # Cursors of files that went away while the exporter was down; their uncounted rows are gone with them.
        for name in set(self.state.rings) - set(paths) - set(self.followed):
            if not self.state.rings[name].finished:
                _log.warning("ring file %s went away before it was drained; how many rows is unknown", name)
            del self.state.rings[name]

    def _at_head(self, ring: RingFile) -> RingState:
        """Return the state that starts after all that the file holds, and count what that skips."""
        head, status = ring.head(), ring.status()
        self.state.totals.add("telemetry_rows_lost_total", ("no_state",), head)
        if head:
            _log.warning("no state: %d rows of %s are not counted; they stay readable by look-up", head, ring.path.name)
        # Its unfinished requests may have been counted before the state was lost.
        dead = not ring.owner_alive()
        return RingState(head, cumulative(status) if status else Totals(), dead, self._now() if dead else 0)

    def _follow(self, followed: Followed) -> None:
        """Add a file's new rows and status to the totals; the last ones of a dead worker too."""
        ring, state = followed.ring, followed.state
        if state.finished:
            followed.alive = False
            followed.status = followed.status or ring.status()
            return
        # Asked before reading: what a worker that is dead now had written is all there, so that one reading drains it.
        followed.alive = ring.owner_alive()
        # No descriptor left, no permission: not being able to look is not the owner's death, and raises here.
        removed = not followed.alive and not _can_look(ring.path)
        self._read_rows(followed)
        self._read_status(followed)
        if followed.alive:
            followed.open_starts = ring.open_slots()["start_unix_ns"]
        elif not followed.unread and not removed:
            self._finish(followed)

    def _finish(self, followed: Followed) -> None:
        """Count a worker's end, and the requests that it never ended, once."""
        now = self._now()
        how = "clean" if (followed.status or {}).get("phase") == "stopped" else "died"
        self.state.totals.add("model_worker_ends_total", (how,), 1)
        requests = open_requests(followed.ring, alive=False)
        for request in requests:
            self.state.totals.add("model_unfinished_requests_total", (request.stage or "(none)",), 1)
        if self._tap and requests:
            self.state.totals.merge(self._tap.offer_unfinished(followed.ring.header, requests, now))
        followed.open_starts = followed.open_starts[:0]
        followed.state.finished, followed.state.died_unix_ns, followed.state.seen = True, now, Totals()

    def _read_rows(self, followed: Followed) -> None:
        """Read and count new rows, a bounded number."""
        ring, state, totals = followed.ring, followed.state, self.state.totals
        began = state.cursor
        head = ring.head()
        stop = min(head, state.cursor + _MOST_ROWS_A_TICK)
        while state.cursor < stop:
            batch = ring.read(state.cursor, _READ_ROWS)
            header, strings = ring.header, ring.strings()
            delta = aggregate(batch.rows, strings, header.stages)
            if batch.lost:
                delta.add("telemetry_rows_lost_total", ("overwritten",), batch.lost)
            if batch.torn:
                delta.add("telemetry_rows_lost_total", ("torn",), batch.torn)
            if self._tap and len(batch.rows):
                delta.merge(self._tap.offer(header, batch.rows, strings))
            totals.merge(delta)
            # Cursor and totals move together: a state saved between two of them would count rows twice or never.
            state.cursor = batch.cursor
        followed.unread = max(0, head - state.cursor)
        self.laps_read = max(self.laps_read, (state.cursor - began + followed.unread) / ring.layout.ring_rows)

    def _read_status(self, followed: Followed) -> None:
        """Add what the worker counted since its last status page."""
        status = followed.ring.status()
        if status is None or not isinstance(status, dict):
            return
        if followed.status is None or status.get("written_unix_ns") != followed.status.get("written_unix_ns"):
            counted = cumulative(status)
            self.state.totals.merge(counted.since(followed.state.seen))
            followed.state.seen = counted
        followed.status = status

    def _lose(self, followed: Followed, why: str) -> None:
        """Give a file up that became unreadable; its cursor stays, in case it comes back."""
        _log.warning("%s", why)
        followed.ring.close()
        del self.followed[followed.name]
        self.unreadable.add(followed.name)

    def _forget_vanished(self, present: set[str]) -> None:
        """Close files that somebody removed: they were read to their end right before, through the open descriptor."""
        for name in set(self.followed) - present:
            followed = self.followed.pop(name)
            if followed.unread:
                self.state.totals.add("telemetry_rows_lost_total", ("vanished",), followed.unread)
            followed.ring.close()
            self.state.rings.pop(name, None)

    def _age_out(self, paths: dict[str, Path]) -> None:
        """Remove the oldest last flights beyond the bounds; only files that are drained and whose owner is gone."""
        dead = [followed for name, followed in self.followed.items() if followed.state.finished and name in paths]
        dead.sort(key=lambda followed: followed.state.died_unix_ns, reverse=True)
        room = self._last_flight_bytes
        for position, followed in enumerate(dead):
            room -= followed.ring.layout.total
            if (position < self._last_flight_files and room >= 0) or is_locked(paths[followed.name]):
                continue
            if self._holds_back is not None and self._holds_back(followed.name):
                continue
            with contextlib.suppress(OSError):
                paths[followed.name].unlink()
            followed.ring.close()
            del self.followed[followed.name]
            self.state.rings.pop(followed.name, None)


def _can_look(path: Path) -> bool:
    """Return whether the file can be opened; False when somebody removed it: then its lock tells nothing.

    Raises:
        OSError: If it is there and cannot be opened.
    """
    try:
        os.close(os.open(path, os.O_RDONLY))
    except FileNotFoundError:
        return False
    return True
