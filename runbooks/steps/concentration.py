"""From whom do bad requests come, beyond that sender's share of the good ones? Several steps ask it; no step itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from runbooks.rows import Mask, Rows

__all__ = ["most_beyond_its_share"]


def most_beyond_its_share(
    rows: Rows, bad: Mask, good: Mask, columns: Sequence[str]
) -> tuple[str, str, Mask, float] | None:
    """Return the column and value that bad requests share most, its rows, and how far beyond its share of good ones.

    Args:
        rows: The requests.
        bad: Those that are bad, bool [rows]; at least one.
        good: Those to compare with, bool [rows].
        columns: Labels to look at, the preferred one first.

    Returns:
        The last value is 1 when all bad requests come from it and no good one does, 0 when it sends as many of both;
        None when no column is there.
    """
    best: tuple[str, str, Mask, float] | None = None
    for column in columns:
        values = rows.labels.get(column)
        if values is None:
            continue
        value, count = Counter(values[bad].tolist()).most_common(1)[0]
        mine = np.asarray(values == value)
        usual = float((mine & good).sum()) / max(float(good.sum()), 1.0)
        beyond = (count / float(bad.sum()) - usual) / max(1.0 - usual, 1e-9)
        # Of equal ones the first stays: a release can be called back, a browser cannot.
        if best is None or beyond > best[3] + 0.05:
            best = (column, str(value) or "(absent)", mine, beyond)
    return best
