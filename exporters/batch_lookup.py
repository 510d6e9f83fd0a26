"""For whom a batch was padded: the request with the longest text among those that shared it, found afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.archive.reader import Archive
from exporters.ring_folder import READ_ERRORS, open_rings
from exporters.ring_scan import rows_with
from probes.reader import RingFile

__all__ = ["Batch", "widest_of"]

# Ring file's id and batch id: a batch never leaves its worker.
Batch = tuple[str, int]

MOST_BATCHES: Final = 64
# A batch's requests begin within the time that one may wait in a queue; the archive is asked for no more.
_AROUND_NS: Final = 60 * 10**9
_MOST_BLOCKS: Final = 32

_log = logging.getLogger(__name__)


def widest_of(ring_dir: Path, batches: Iterable[tuple[Batch, int]], archive: Archive | None = None) -> dict[Batch, str]:
    """Return the trace id of the request that the others of its batch were padded for; of several the first.

    Args:
        ring_dir: Folder of ring files.
        batches: Batches, each with when one of its requests started, ns since 1970; the first 64 are looked for.
        archive: Where rows go that leave their rings.
    """
    wanted = dict(list(batches)[:MOST_BATCHES])
    found: dict[Batch, str] = {}
    for ring_id, rows in _from_rings(ring_dir, wanted):
        _note(found, ring_id, rows)
    left = {batch: start for batch, start in wanted.items() if batch not in found}
    if archive is not None and left:
        for ring_id, rows in _from_archive(archive, left):
            _note(found, ring_id, rows[np.isin(rows["batch_id"], [number for name, number in left if name == ring_id])])
            if found.keys() >= left.keys():
                break
    return found


def _from_rings(folder: Path, wanted: dict[Batch, int]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    for ring in open_rings(folder):
        if not isinstance(ring, RingFile):
            continue
        numbers = [number for name, number in wanted if name == ring.header.ring_id]
        try:
            rows = rows_with(ring, "batch_id", numbers) if numbers else None
        except READ_ERRORS as error:
            _log.warning("ring file left out: %s", error)
            continue
        if rows is not None:
            yield ring.header.ring_id, rows


def _from_archive(archive: Archive, wanted: dict[Batch, int]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield the rows around the batches, a bounded number of blocks."""
    starts = list(wanted.values())
    ids = {ring for ring, _ in wanted}
    blocks = 0

    def promises(name: str, _info: object) -> bool:
        nonlocal blocks
        # The id is the end of the file's name.
        ours = any(Path(name).stem.endswith(ring) for ring in ids)
        blocks += ours
        return ours and blocks <= _MOST_BLOCKS

    for part in archive.window(min(starts) - _AROUND_NS, max(starts) + _AROUND_NS, promises):
        yield part.header.ring_id, part.rows


def _note(found: dict[Batch, str], ring_id: str, rows: npt.NDArray[Any]) -> None:
    """Add the requests that say of themselves that they were the widest."""
    names = [name for name in rows.dtype.names or () if name.endswith("/widest")]
    for row in rows if names else ():
        if any(row[name] == 1 for name in names):
            trace = f"{int(row['trace_hi']):016x}{int(row['trace_lo']):016x}"
            found.setdefault((ring_id, int(row["batch_id"])), trace)
