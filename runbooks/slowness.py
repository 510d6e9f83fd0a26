"""Which requests are slow: against their own length class in healthy time, never against one number for all."""

from __future__ import annotations

import numpy as np

from runbooks.rows import Floats, Rows

__all__ = ["normal_durations", "slow_mask"]

# Three times its class's normal, and at least 25 ms more: what a person would call slow on a service of any speed.
SLOW_FACTOR = 3.0
SLOW_EXTRA_SECONDS = 0.025
# Fewer healthy requests of a class give no median worth the name.
LEAST_NORMAL_ROWS = 10


def normal_durations(rows: Rows, baseline: tuple[float, float]) -> Floats:
    """Return the normal duration of each request: the median of its length class in the baseline.

    A class with too few requests there falls back to the lower quartile of the class over all rows, which a failure
    that hits less than three quarters of the requests does not move.

    Args:
        rows: Requests.
        baseline: Healthy time, unix seconds.

    Returns:
        Seconds, shape (n,).
    """
    normal = np.full(len(rows), np.inf)
    healthy = rows.between(*baseline) & rows.answered()
    for bucket in set(rows.bucket.tolist()):
        of_class = rows.bucket == bucket
        inside = rows.duration_s[of_class & healthy]
        if len(inside) >= LEAST_NORMAL_ROWS:
            normal[of_class] = np.median(inside)
        else:
            normal[of_class] = np.quantile(rows.duration_s[of_class], 0.25)
    return normal


def slow_mask(rows: Rows, baseline: tuple[float, float]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which requests took over three times their class's normal and 25 ms more."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    normal = normal_durations(rows, baseline)
    return np.asarray(rows.duration_s > np.maximum(SLOW_FACTOR * normal, normal + SLOW_EXTRA_SECONDS))
