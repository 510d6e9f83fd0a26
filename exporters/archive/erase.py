"""Masks a session in sealed segments: its id and hash go, the measurements of its requests stay.

A segment is written anew under its own name, so that a kill leaves the old or the new one. Erase the ring files first:
what the exporter seals after that is masked already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from exporters.archive.blocks import Part
from exporters.archive.keys import hashes_of
from exporters.archive.lock import archive_lock
from exporters.archive.sealing import write_segment
from exporters.archive.segment import PART_SUFFIX, READ_ERRORS, Segment, list_segments

__all__ = ["ArchiveBusyError", "Erased", "erase", "erase_hashes"]


class ArchiveBusyError(Exception):
    """Somebody else keeps changing the archive; the message is one line with the mend."""


@dataclass
class Erased:
    """What was done.

    Attributes:
        rows: Rows that were masked.
        segments: Segments that were written anew.
        unreadable: Segments that could not be read, and may still hold the session -> why.
    """

    rows: int = 0
    segments: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)


def erase(folder: Path, ring_dir: Path, session_id: str, *, patience_seconds: float = 10.0) -> Erased:
    """Mask a session's rows in all segments; doing so twice does no harm.

    Args:
        folder: The archive; a missing one holds nothing.
        ring_dir: Folder of ring files, for its key.
        session_id: As it came in the header, or as it was generated.
        patience_seconds: How long to wait for the exporter to end what it writes.

    Returns:
        What was done; a segment in *unreadable* was not.

    Raises:
        ArchiveBusyError: If the lock could not be had.
        OSError: If a segment cannot be written: full disk, no permission; segments before it are done.
    """
    return erase_hashes(folder, hashes_of(session_id, ring_dir, folder), patience_seconds=patience_seconds)


def erase_hashes(folder: Path, wanted: Sequence[int], *, patience_seconds: float = 10.0) -> Erased:
    """Mask the rows that have one of these session hashes, as `erase` does when the id itself is not known.

    Args:
        folder: The archive; a missing one holds nothing.
        wanted: The hashes.
        patience_seconds: How long to wait for the exporter to end what it writes.

    Raises:
        ArchiveBusyError, OSError: As `erase`.
    """
    done = Erased()
    if not folder.is_dir() or not wanted:
        return done
    with archive_lock(folder, patience_seconds) as mine:
        if not mine:
            raise ArchiveBusyError(f"the archive {folder} is being written: try again")
        # Half-written ones of a killed exporter; a living one cannot be at it, for the lock is ours.
        for path in folder.glob(f"*{PART_SUFFIX}"):
            path.unlink(missing_ok=True)
        for path in list_segments(folder):
            try:
                with Segment(path) as segment:
                    if not segment.positions("session_hash", wanted):
                        continue
                    parts = _whole(segment.parts())
            except READ_ERRORS as error:
                done.unreadable[path.name] = str(error)
                continue
            done.rows += sum(_mask(part, wanted) for part in parts)
            write_segment(folder, parts, name=path.name)
            done.segments += 1
    return done


def _whole(blocks: Iterable[Part]) -> list[Part]:
    """Return each ring file's rows in one piece."""
    found: dict[str, list[Part]] = {}
    for block in blocks:
        found.setdefault(block.ring, []).append(block)
    return [replace(parts[0], rows=np.concatenate([part.rows for part in parts])) for parts in found.values()]


def _mask(part: Part, wanted: Sequence[int]) -> int:
    """Take the session's id and hash out of the rows, and return how many it were."""
    hit = np.isin(part.rows["session_hash"], np.array(wanted, dtype=np.uint64))
    part.rows["session"][hit] = b""
    part.rows["session_hash"][hit] = 0
    return int(hit.sum())
