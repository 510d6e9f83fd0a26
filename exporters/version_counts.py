"""Rows into counts of two versions of the model: pure and vectorised, like `aggregate`, whose part this is.

Source   columns `request/version_...` and `request/canary_...`, which the service writes only while two are served.
Error    none; distances are rounded to a billionth.
Cost     O(rows) in numpy; nothing where the columns are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.names_canary import COMPARISONS, ROLES, VERSION_RESULTS
from exporters.totals import Labels, Totals

__all__ = ["answering_role", "count_versions"]

Rows = npt.NDArray[Any]
Observe = Callable[[Totals, str, Sequence[Labels], npt.NDArray[np.int64], npt.NDArray[Any]], None]

_ROLE: Final = "request/version_role"
_FAILED: Final = "request/version_failed"
_COMPARISON: Final = "request/canary_comparison"
_DISTANCE: Final = "request/canary_distance"
_FORWARD: Final = "model.forward"
_NEVER: Final = 2**64 - 1
_OK: Final = 0
# Outcomes in which somebody answered: ok and degraded (exporters/labels.py).
_ANSWERED: Final = (0, 3)
_CANARY: Final = ROLES.index("canary")


def _indexes(rows: Rows, column: str, strings: Sequence[str], words: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return for each row the index of a text column's word, -1 where it has none of them."""
    found = np.full(len(rows), -1, np.int64)
    if column in (rows.dtype.names or ()):
        for index, text in enumerate(strings):
            if text in words:
                found[rows[column] == index] = words.index(text)
    return found


def answering_role(rows: Rows, strings: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the index into ROLES of the version that answered each row; the stable one where there is but one.

    Args:
        rows: Structured array of rows.
        strings: The ring file's string table.
    """
    if _ROLE not in (rows.dtype.names or ()):
        return np.zeros(len(rows), np.int64)
    asked = _indexes(rows, _ROLE, strings, ROLES)
    failed = _indexes(rows, _FAILED, strings, VERSION_RESULTS)
    return np.where((asked == _CANARY) & (failed < 0), _CANARY, 0)


def count_versions(rows: Rows, strings: Sequence[str], delta: Totals, observe: Observe) -> None:
    """Add what is told by version.

    Args:
        rows: Structured array of rows.
        strings: The ring file's string table.
        delta: Where to add.
        observe: Adds observations to a histogram.
    """
    names = rows.dtype.names or ()
    if _ROLE not in names:
        return
    asked = _indexes(rows, _ROLE, strings, ROLES)
    failed = _indexes(rows, _FAILED, strings, VERSION_RESULTS)
    answered = np.isin(rows["outcome"], _ANSWERED)
    error, late = VERSION_RESULTS.index("error"), VERSION_RESULTS.index("late")
    # The stable version has nobody behind it: its failures are the request's own.
    reasons = _indexes(rows, "reason", strings, ("model_error", "deadline"))
    own = np.select([reasons == 0, reasons == 1, answered], [error, late, _OK], default=-1)
    results = np.where(asked == _CANARY, np.where(failed >= 0, failed, np.where(answered, _OK, -1)), own)
    told = (asked >= 0) & (results >= 0)
    pairs = np.bincount(asked[told] * len(VERSION_RESULTS) + results[told], minlength=len(ROLES) * len(VERSION_RESULTS))
    for pair in np.flatnonzero(pairs).tolist():
        labels = (ROLES[pair // len(VERSION_RESULTS)], VERSION_RESULTS[pair % len(VERSION_RESULTS)])
        delta.add("model_version_requests_total", labels, int(pairs[pair]))
    if f"{_FORWARD}/start_ns" in names:
        ran = told & (results == _OK) & (rows[f"{_FORWARD}/start_ns"] != _NEVER)
        roles = [(role,) for role in ROLES]
        observe(delta, "model_version_seconds", roles, asked[ran], rows[f"{_FORWARD}/duration_ns"][ran])
    _count_comparisons(rows, strings, delta, observe)


def _count_comparisons(rows: Rows, strings: Sequence[str], delta: Totals, observe: Observe) -> None:
    compared = _indexes(rows, _COMPARISON, strings, COMPARISONS)
    counts = np.bincount(compared[compared >= 0], minlength=len(COMPARISONS))
    for index in np.flatnonzero(counts).tolist():
        delta.add("model_version_comparisons_total", (COMPARISONS[index],), int(counts[index]))
    if _DISTANCE in (rows.dtype.names or ()):
        with np.errstate(invalid="ignore"):
            valid = (rows[_DISTANCE] >= 0.0) & (rows[_DISTANCE] <= 1.0)
        steps = np.rint(rows[_DISTANCE][valid] * 1e9).astype(np.int64)
        observe(delta, "model_version_distance_ratio", [()], np.zeros(len(steps), np.int64), steps)
