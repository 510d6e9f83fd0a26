"""From a session, a trace id, or "the slowest" to the requests themselves: from the ring files, then from the archive.

Rings first: a row that leaves its ring in between was sealed before (archive/archiver.py), and is found afterwards.

Cost     a session: 8 bytes a row are scanned, in rings and archive alike; a trace: as much in the archive, all bytes of
         the rings; the slowest and errors: all rows of the rings are read, and the archive's blocks that can hold one.
Absent   an unknown id is an empty list; `exporters.answer` tells whether the rows of the asked time are kept at all.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.archive.blocks import Part
from exporters.archive.keys import hashes_of
from exporters.archive.reader import Archive
from exporters.names import OUTCOMES
from exporters.ring_folder import READ_ERRORS, open_rings
from exporters.ring_scan import rows_of_trace
from exporters.row_plan import RowPlan
from exporters.rows import OpenRequest, open_requests
from exporters.trace_view import TraceView, view_open, view_row
from probes.reader import RingFile
from probes.row_check import join_rows

__all__ = ["TraceView", "errors", "find_session", "find_trace", "slowest"]

Array = npt.NDArray[Any]

_log = logging.getLogger(__name__)
_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}")
_FAULTS = np.array([OUTCOMES.index(name) for name in ("error", "disconnected", "refused")])


def find_session(
    ring_dir: Path | str, session_id: str, *, archive: Archive | None = None, now_unix_ns: int | None = None
) -> list[TraceView]:
    """Return a session's requests by start, those in flight or never ended included.

    Args:
        ring_dir: Folder of ring files.
        session_id: As it came in the header, or as it was generated; anything else finds nothing.
        archive: Where rows go that leave their rings; None to ask the rings alone.
        now_unix_ns: Until when unfinished requests are shown to last; now by default.
    """
    folder = Path(ring_dir)
    # Without a key nothing was ever hashed, so nothing can be found.
    wanted = hashes_of(session_id, folder, archive.folder if archive else None)
    if not wanted:
        return []
    return _views(
        folder,
        lambda ring: ring.find_hash(*wanted),
        lambda request: request.session_hash in wanted,
        archive.with_number("session_hash", wanted) if archive else (),
        now_unix_ns,
    )


def find_trace(
    ring_dir: Path | str, trace_id: str, *, archive: Archive | None = None, now_unix_ns: int | None = None
) -> list[TraceView]:
    """Return the requests of a trace by start: one per service that took part and records into this folder.

    Args:
        ring_dir: Folder of ring files.
        trace_id: 32 hex digits, of any case; anything else finds nothing.
        archive: Where rows go that leave their rings; None to ask the rings alone.
        now_unix_ns: Until when unfinished requests are shown to last; now by default.
    """
    if not _TRACE_ID.fullmatch(trace_id):
        return []
    high, low = int(trace_id[:16], 16), int(trace_id[16:], 16)
    return _views(
        Path(ring_dir),
        lambda ring: rows_of_trace(ring, high, low),
        lambda request: request.trace_id == trace_id.lower(),
        _of_trace(archive, high, low) if archive else (),
        now_unix_ns,
    )


def slowest(
    ring_dir: Path | str,
    n: int = 10,
    since_ns: int | None = None,
    *,
    archive: Archive | None = None,
    now_unix_ns: int | None = None,
) -> list[TraceView]:
    """Return the *n* slowest requests, slowest first; a request still in flight lasts until now.

    Args:
        ring_dir: Folder of ring files.
        n: How many.
        since_ns: Only requests that ended at or after this, ns since 1970, or have not ended.
        archive: Where rows go that leave their rings; None to ask the rings alone.
        now_unix_ns: Until when unfinished requests are shown to last; now by default.
    """

    def top(ring: RingFile) -> Array:
        rows = _select(ring, lambda rows: _since(rows, since_ns))
        return rows[np.argsort(rows["duration_ns"])[::-1][:n]]

    # A request that hangs in a living worker is slow now; one of a dead worker lasts no longer.
    views = _views(
        Path(ring_dir),
        top,
        lambda request: request.alive,
        archive.slowest(n, since_ns) if archive and n > 0 else (),
        now_unix_ns,
    )
    return sorted(views, key=lambda view: -view.duration_s)[: max(0, n)]


def errors(
    ring_dir: Path | str,
    n: int = 100,
    since_ns: int | None = None,
    *,
    archive: Archive | None = None,
    now_unix_ns: int | None = None,
) -> list[TraceView]:
    """Return requests that went wrong: the service's faults first, refused ones last, newest first among each.

    Args:
        ring_dir: Folder of ring files.
        n: Most to return.
        since_ns: Only requests that ended at or after this, ns since 1970; those that never ended: started.
        archive: Where rows go that leave their rings; None to ask the rings alone.
        now_unix_ns: Until when unfinished requests are shown to last; now by default.
    """

    def failed(ring: RingFile) -> Array:
        rows = _select(ring, lambda rows: _since(rows, since_ns) & np.isin(rows["outcome"], _FAULTS))
        refused = rows["outcome"] == OUTCOMES.index("refused")
        return rows[np.lexsort((-rows["start_unix_ns"].astype(np.int64), refused))[:n]]

    def never_ended(request: OpenRequest) -> bool:
        return not request.alive and request.start_unix_ns >= (since_ns or 0)

    archived = archive.errors(n, since_ns) if archive and n > 0 else ()
    views = _views(Path(ring_dir), failed, never_ended, archived, now_unix_ns)
    return sorted(views, key=lambda view: (view.outcome == "refused", -view.start_unix_ns))[: max(0, n)]


def _since(rows: Array, since_ns: int | None) -> Array:
    """Return which rows ended at or after *since_ns*."""
    ends: Array = rows["start_unix_ns"] + rows["duration_ns"]
    return ends >= max(0, since_ns or 0)


def _select(ring: RingFile, holds: Callable[[Array], Array]) -> Array:
    """Return the rows of a file for which *holds* is true."""
    parts, cursor, head = [], 0, ring.head()
    while cursor < head:
        batch = ring.read(cursor, 16384)
        cursor = batch.cursor
        parts.append(batch.rows[holds(batch.rows)])
    if len(parts) == 1:
        return parts[0]
    if parts and all(part.dtype == parts[0].dtype for part in parts):
        return join_rows(parts)
    # None, or the schema grew between two reads: once more, in one piece.
    rows = ring.read(0, ring.layout.ring_rows).rows
    return rows[holds(rows)]


def _views(
    folder: Path,
    rows_of: Callable[[RingFile], Array],
    wanted: Callable[[OpenRequest], bool],
    archived: Iterable[Part],
    now_unix_ns: int | None,
) -> list[TraceView]:
    """Return the chosen rows and open requests, by start; one that ended meanwhile, or is archived already, once."""
    now = time.time_ns() if now_unix_ns is None else now_unix_ns
    found: dict[tuple[str, str], TraceView] = {}
    for view in chain(_each_view(folder, rows_of, wanted, now), _archived_views(archived)):
        key = (view.trace_id, view.spans[0].span_id)
        if key not in found or found[key].status == "unfinished":
            found[key] = view
    return sorted(found.values(), key=lambda view: view.start_unix_ns)


def _each_view(
    folder: Path, rows_of: Callable[[RingFile], Array], wanted: Callable[[OpenRequest], bool], now: int
) -> Iterator[TraceView]:
    """Yield the views of one file after the other; a damaged file costs that file."""
    for ring in open_rings(folder):
        if not isinstance(ring, RingFile):
            continue
        try:
            alive = ring.owner_alive()
            # Open ones first: one that ends between the two reads is then seen twice rather than never.
            waiting = [view_open(r, ring.header.service, now) for r in open_requests(ring, alive) if wanted(r)]
            rows = rows_of(ring)
            header, strings = ring.header, ring.strings()
            plan = RowPlan(rows.dtype, header.stages)
            views = [view_row(plan, row, strings, header) for row in rows.tolist()]
        except READ_ERRORS as error:
            _log.warning("ring file left out: %s", error)
            continue
        yield from waiting
        yield from views


def _archived_views(parts: Iterable[Part]) -> Iterator[TraceView]:
    """Yield the views of rows of the archive."""
    for part in parts:
        plan = RowPlan(part.rows.dtype, part.header.stages)
        for row in part.rows.tolist():
            yield view_row(plan, row, part.strings, part.header)


def _of_trace(archive: Archive, high: int, low: int) -> Iterator[Part]:
    """Yield the rows of a trace: found by its lower half, told apart by its upper one."""
    for part in archive.with_number("trace_lo", [low]):
        yield replace(part, rows=part.rows[part.rows["trace_hi"] == np.uint64(high)])
