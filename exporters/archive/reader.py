"""Rows out of the archive: by session, by trace, by time. Damage costs a segment from there on, and is told.

Cost   a session or a trace: 8 bytes a row are scanned, then a block a hit; by time: the blocks in the window.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.archive.blocks import BlockInfo, Part
from exporters.archive.segment import READ_ERRORS, Segment, list_segments, times_of
from exporters.names import OUTCOMES

__all__ = ["Archive"]

Rows = npt.NDArray[Any]

_log = logging.getLogger(__name__)
_REFUSED = OUTCOMES.index("refused")
_FAULTS = np.array([OUTCOMES.index(name) for name in ("error", "disconnected")])


class Archive:
    """A folder of sealed segments, which may be missing.

    Args:
        folder: The folder.

    Attributes:
        unreadable: Segments that the questions so far could not read -> why.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unreadable: dict[str, str] = {}

    def oldest_unix_ns(self) -> int | None:
        """Return when the oldest archived request started, None when nothing is archived."""
        paths = self._paths()
        return times_of(paths[0])[0] if paths else None

    def with_number(self, column: str, numbers: Sequence[int]) -> Iterator[Part]:
        """Yield the rows that have one of these numbers.

        Args:
            column: `session_hash` or `trace_lo`.
            numbers: A few.
        """

        def chosen(segment: Segment) -> Iterator[Part]:
            positions = segment.positions(column, numbers)
            for index, info in enumerate(segment.blocks()) if positions else ():
                inside = [at - info.at for at in positions if info.at <= at < info.at + info.rows]
                if inside:
                    part = segment.read(index)
                    yield replace(part, rows=part.rows[inside])

        if numbers:
            for path in self._paths():
                yield from self._from(path, chosen)

    def window(
        self, since_ns: int | None, until_ns: int | None, wanted: Callable[[str, BlockInfo], bool] = lambda *_: True
    ) -> Iterator[Part]:
        """Yield the blocks with requests that ended at or after *since_ns* and started at or before *until_ns*.

        Args:
            since_ns: Start of the window, ns since 1970; None for all.
            until_ns: Its end; None for now.
            wanted: Told the ring file's name and what is known of a block: whether it is to be read.
        """

        def chosen(segment: Segment) -> Iterator[Part]:
            names = list(segment.ranges())
            # Newest first here as well, and one by one: who has enough asks for no more.
            for index, info in sorted(enumerate(segment.blocks()), key=lambda found: -found[1].end_unix_ns):
                times = info.start_unix_ns, info.end_unix_ns
                if _overlaps(times, since_ns, until_ns) and wanted(names[info.part], info):
                    yield segment.read(index)

        # Newest first: those who look for a bounded number get the latest.
        for path in reversed(self._paths()):
            if _overlaps(times_of(path), since_ns, until_ns):
                yield from self._from(path, chosen)

    def slowest(self, n: int, since_ns: int | None) -> Iterator[Part]:
        """Yield rows among which are the *n* slowest requests that ended at or after *since_ns*."""
        best = np.zeros(0, dtype=np.uint64)

        def promises(_ring: str, info: BlockInfo) -> bool:
            return len(best) < n or info.longest_ns > best[0]

        for part in self.window(since_ns, None, promises):
            rows = _ended_since(part.rows, since_ns)
            rows = rows[np.argsort(rows["duration_ns"])[::-1][:n]]
            best = np.sort(np.concatenate([best, rows["duration_ns"]]))[-n:]
            yield replace(part, rows=rows)

    def errors(self, n: int, since_ns: int | None) -> Iterator[Part]:
        """Yield rows among which are the *n* latest faults since then, and refused requests if that are fewer."""
        faults = refused = 0

        def promises(_ring: str, info: BlockInfo) -> bool:
            return faults < n and bool(info.faults or (info.refused and faults + refused < n))

        for part in self.window(since_ns, None, promises):
            rows = _ended_since(part.rows, since_ns)
            rows = rows[np.isin(rows["outcome"], [*_FAULTS, _REFUSED])]
            refused += int((rows["outcome"] == _REFUSED).sum())
            faults += int((rows["outcome"] != _REFUSED).sum())
            yield replace(part, rows=rows)

    def _paths(self) -> list[Path]:
        """Return the segments, oldest first."""
        try:
            return list_segments(self.folder)
        except OSError as error:
            self.unreadable[self.folder.name] = error.strerror or str(error)
            return []

    def _from(self, path: Path, choose: Callable[[Segment], Iterator[Part]]) -> Iterator[Part]:
        """Yield what *choose* takes of a segment, up to where it cannot be read."""
        try:
            with Segment(path) as segment:
                yield from choose(segment)
        except FileNotFoundError:
            # Retention was quicker.
            return
        except READ_ERRORS as error:
            if path.name not in self.unreadable:
                _log.warning("segment left out: %s", error)
            self.unreadable[path.name] = str(error)


def _overlaps(times: tuple[int, int], since_ns: int | None, until_ns: int | None) -> bool:
    """Return whether requests between these two times can lie in the window."""
    return (since_ns is None or times[1] >= since_ns) and (until_ns is None or times[0] <= until_ns)


def _ended_since(rows: Rows, since_ns: int | None) -> Rows:
    """Return the rows that ended at or after *since_ns*."""
    ended: Rows = rows[rows["start_unix_ns"] + rows["duration_ns"] >= max(0, since_ns or 0)]
    return ended
