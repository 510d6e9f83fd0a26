"""Copies of ring slots into rows: which are whole, judged in arrays; nothing is opened or read here.

Cost      a CRC per row (0.3 us for 330 bytes), everything else in numpy, about 40 us a call.
Error     a row counts as whole only if length, sequence number, commit word and CRC agree.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from probes.layout import FRAME
from probes.schema import Column, Revision, compile_revision

__all__ = ["Rows", "Slots", "assemble", "join_rows", "judge", "name_sessions", "revision_of", "slots_of"]

Rows = npt.NDArray[np.void]
Slots = npt.NDArray[np.void]

_SEQ_BYTES: Final = 8  # every body begins with its sequence number


@functools.lru_cache(maxsize=128)
def revision_of(columns: tuple[Column, ...]) -> Revision:
    """Return the revision for these columns, the same for all files that have them: all workers of a service do.

    Args:
        columns: Columns in order, names unique.

    Raises:
        KeyError, ValueError: As `compile_revision`.
    """
    return compile_revision(columns)


def slots_of(raw: npt.NDArray[np.uint8], row_bytes: int) -> Slots:
    """Return copied slots with the fields of their frames: word, crc, revision, length, and seq of the body.

    Args:
        raw: Bytes of whole slots, shape (n * row_bytes,).
        row_bytes: Bytes of one slot.
    """
    return raw.view(
        np.dtype(
            {
                "names": ["word", "crc", "revision", "length", "seq"],
                "formats": ["<u8", "<u4", "<u2", "<u2", "<u8"],
                "offsets": [0, 8, 12, 14, FRAME.size],
                "itemsize": row_bytes,
            }
        )
    )


def judge(
    raw: npt.NDArray[np.uint8], row_bytes: int, sequences: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which slots hold the row that is asked for, and which a later one; what is in neither is torn.

    Args:
        raw: Bytes of whole slots, shape (n * row_bytes,).
        row_bytes: Bytes of one slot.
        sequences: Sequence number of the row that each slot should hold, shape (n,).
    """
    slots = slots_of(raw, row_bytes)
    words = slots["word"]
    sound = (slots["seq"] == words - np.uint64(1)) & (slots["length"] <= row_bytes - FRAME.size)
    sound &= slots["length"] >= _SEQ_BYTES
    lengths = np.where(sound, slots["length"], 0).tolist()
    view = raw.data
    starts = range(FRAME.size, len(raw), row_bytes)
    sums = [crc32(view[at : at + length]) for at, length in zip(starts, lengths, strict=True)]
    sound &= slots["crc"] == np.array(sums, np.uint32)
    wanted = sequences + np.uint64(1)
    return sound & (words == wanted), sound & (words > wanted)


def assemble(
    raw: npt.NDArray[np.uint8], row_bytes: int, whole: npt.NDArray[np.bool_], revisions: Sequence[Revision]
) -> Rows:
    """Return the whole rows in the newest revision; columns that an older row did not have are absent in it.

    Args:
        raw: Bytes of whole slots, shape (n * row_bytes,).
        row_bytes: Bytes of one slot.
        whole: Which of them to take, shape (n,).
        revisions: All revisions, oldest first, those of all whole rows among them.
    """
    newest = revisions[-1]
    numbers = slots_of(raw, row_bytes)["revision"][whole]
    bodies = raw.reshape(-1, row_bytes)[:, FRAME.size :]
    bodies = bodies if whole.all() else bodies[whole]
    if (numbers == len(revisions) - 1).all():
        taken: Rows = np.ascontiguousarray(bodies[:, : newest.dtype.itemsize]).reshape(-1).view(newest.dtype)
        return taken
    rows = np.repeat(newest.blank(), len(numbers))
    flat = rows.view(np.uint8).reshape(len(numbers), newest.dtype.itemsize)
    for number in np.unique(numbers).tolist():
        where, size = np.flatnonzero(numbers == number), revisions[number].dtype.itemsize
        flat[where, :size] = bodies[where, :size]
    return rows


def join_rows(parts: Sequence[Rows], newest: Revision | None = None) -> Rows:
    """Return rows of several reads under each other.

    Args:
        parts: Rows, each part in the revision that was the newest when it was read; one part at least, or *newest*.
        newest: The revision to return them in, of which each part's is a prefix; by default that of the first.
    """
    dtype = parts[0].dtype if newest is None else newest.dtype
    if newest is None or all(part.dtype == dtype for part in parts):
        if len(parts) == 1:
            return parts[0]
        # By bytes: numpy copies structured rows column by column.
        return np.concatenate([np.empty(0, np.uint8), *(part.view(np.uint8) for part in parts)]).view(dtype)
    rows = np.repeat(newest.blank(), sum(map(len, parts)))
    flat: npt.NDArray[Any] = rows.view(np.uint8).reshape(len(rows), dtype.itemsize)
    at = 0
    for part in parts:
        size = part.dtype.itemsize
        flat[at : at + len(part), :size] = part.view(np.uint8).reshape(len(part), size)
        at += len(part)
    return rows


def name_sessions(rows: Rows) -> Rows:
    """Give requests that came without a valid session their trace id as one; the writer leaves that to its readers."""
    nameless = rows["session"] == b""
    ids = np.stack([rows["trace_hi"][nameless], rows["trace_lo"][nameless]], axis=1)
    rows["session"][nameless] = np.frombuffer(ids.astype(">u8").tobytes().hex().encode(), "S32")
    return rows
