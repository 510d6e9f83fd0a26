"""Looks at the rows of a window one by one: how many stages and attributes the poorest of them has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probes.reader import RingFile, list_rings

__all__ = ["RowCheck", "check_rows", "head", "newest_rows"]

# what drift and quality checks feed on, as ours.py records it
INPUTS = (
    "input_length",
    "tokens",
    "confidence",
    *(f"request/share_{kind}" for kind in ("alpha", "digit", "space", "punctuation", "cjk", "astral")),
)
OWN_ATTRIBUTES = ("input_length", "tokens", "confidence", "label")
TIMES = ("start_ns", "duration_ns", "cpu_ns")
DID_NOT_RUN = 2**64 - 1
# bounds memory and time after a window; 8,192 rows are half of the default ring
MOST_ROWS = 8192


@dataclass(frozen=True)
class RowCheck:
    """Fewest stages and attributes of any row, and whether all rows have the quality and drift inputs."""

    rows: int = 0
    stages: int = 0
    attributes: int = 0
    inputs: bool = False


def _present(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are there, by the absence marks of the row format."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "f":
        return np.asarray(~np.isnan(values))
    if kind == "i":
        # -1 is how the fixed columns input_length and tokens say "absent"; our handler never records a negative number
        return np.asarray(values >= 0)
    return np.asarray(values != (255 if size == 1 else 0))


def check_rows(rows: npt.NDArray[Any]) -> RowCheck:
    """Count stages and attributes per row.

    Args:
        rows: Structured array in the columns of docs/architecture.md, section 2.
    """
    names = rows.dtype.names or ()
    if not len(rows):
        return RowCheck()
    stages = np.zeros(len(rows), dtype=int)
    attributes = np.zeros(len(rows), dtype=int)
    for name in names:
        _, slash, last = name.partition("/")
        if slash and last == "start_ns":
            stages += rows[name] != DID_NOT_RUN
        elif (slash and last not in TIMES) or name in OWN_ATTRIBUTES:
            attributes += _present(rows[name])
    inputs = all(name in names and bool(_present(rows[name]).all()) for name in INPUTS)
    return RowCheck(len(rows), int(stages.min()), int(attributes.min()), inputs)


def head(folder: Path) -> int:
    """Return the next sequence number of the one ring in *folder*; 0 before there is one."""
    rings = list_rings(folder)
    if not rings:
        return 0
    with RingFile(rings[0]) as ring:
        return ring.head()


def newest_rows(folder: Path, since: int, most: int = MOST_ROWS) -> npt.NDArray[Any]:
    """Return the rows of the one ring in *folder* from sequence number *since* on, at most the newest *most*.

    Args:
        folder: Ring folder of one server.
        since: First sequence number wanted.
        most: Bound on what is read.
    """
    rings = list_rings(folder)
    if not rings:
        return np.empty(0, dtype=[("seq", "<u8")])
    with RingFile(rings[0]) as ring:
        return ring.read(max(since, ring.head() - most), most).rows
