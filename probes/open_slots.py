"""Copies of the table of open slots: requests in flight, or those that a dead worker never ended."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from probes.layout import OPEN_SLOT_BYTES, OPEN_STATE_BUSY

__all__ = ["OPEN_DTYPE", "oldest_age_s", "steady"]

OPEN_DTYPE: Final = np.dtype(
    {
        "names": [
            "state", "stage", "seq", "trace_hi", "trace_lo", "span_id", "parent_span_id", "start_unix_ns",
            "session_hash", "session", "method", "client_release", "device_type", "agent_family",
        ],
        "formats": ["u1", "u1", *["<u8"] * 7, "S32", "<u4", "<u4", "<u4", "<u4"],
        "offsets": [0, 1, 8, 16, 24, 32, 40, 48, 56, 64, 96, 100, 104, 108],
        "itemsize": OPEN_SLOT_BYTES,
    }
)  # fmt: skip
_COMPARED: Final = ("seq", "trace_lo", "span_id", "start_unix_ns", "session_hash", "agent_family")


def oldest_age_s(table: bytes, now_unix_ns: int) -> float | None:
    """Return the age in seconds of the oldest request in flight; None when there is none.

    Args:
        table: A copy of the open slots.
        now_unix_ns: Wall clock, ns since 1970.
    """
    slots = np.frombuffer(table, OPEN_DTYPE)
    starts = slots["start_unix_ns"][slots["state"] == OPEN_STATE_BUSY]
    # The wall clock may have been set back meanwhile: an age is never negative.
    return max(0.0, (now_unix_ns - int(starts.min())) / 1e9) if len(starts) else None


def steady(first: bytes, second: bytes) -> npt.NDArray[np.void]:
    """Return the busy slots that two copies agree on, in order of start.

    A slot that changes hands between the two is neither request's: only what stayed the same is given.

    Args:
        first: The table, without the scratch slot.
        second: The same a moment later; a stage that was entered in between is this one's.
    """
    before, after = np.frombuffer(first, OPEN_DTYPE), np.frombuffer(second, OPEN_DTYPE)
    busy = np.flatnonzero((before["state"] == OPEN_STATE_BUSY) & (after["state"] == OPEN_STATE_BUSY))
    # The few that are busy first: a table of a thousand has a handful.
    before, after = before[busy], after[busy]
    same = np.ones(len(busy), dtype=bool)
    for name in _COMPARED:
        same &= before[name] == after[name]
    kept = after[same]
    return kept[np.argsort(kept["seq"], kind="stable")]
