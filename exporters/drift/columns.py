"""Which rows and values of them are compared with the training: answered requests, values that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.labels import OUTCOMES

__all__ = ["answered", "label_of", "numbers_of", "words_of"]

Rows = npt.NDArray[Any]

_ANSWERED = tuple(OUTCOMES.index(outcome) for outcome in ("ok", "degraded"))


def answered(rows: Rows) -> Rows:
    """Return the rows of answered requests: what the contract refuses is not what the model was trained for either."""
    return rows[np.isin(rows["outcome"], _ANSWERED)]


def label_of(column: str) -> str:
    """Return a column's name as a feature: without the stage in front."""
    return column.rpartition("/")[2]


def numbers_of(rows: Rows, column: str) -> npt.NDArray[np.float64]:
    """Return a column's values that are there, in order; none where rows have no such column of numbers.

    Args:
        rows: Structured array of rows.
        column: Name of a column.
    """
    if column not in (rows.dtype.names or ()) or rows.dtype[column].kind not in "fiu":
        return np.empty(0)
    values = rows[column]
    # Whole numbers here are counts: what is absent is negative (docs/architecture.md, section 2).
    there = ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
    found: npt.NDArray[np.float64] = values[there].astype(np.float64)
    return found


def words_of(rows: Rows, strings: Sequence[str], column: str) -> list[str]:
    """Return a text column's words that are there, in order.

    Args:
        rows: Structured array of rows.
        strings: The ring file's string table.
        column: Name of a column.
    """
    if column not in (rows.dtype.names or ()) or rows.dtype[column].kind != "u":
        return []
    # An index that the table does not have is some other word, and no reference knows the empty one.
    return [strings[place] if place < len(strings) else "" for place in rows[column].tolist() if place]
