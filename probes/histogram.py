"""Counts of durations between fixed bounds, cheap enough for a tick or a collection."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

__all__ = ["Histogram"]


class Histogram:
    """Cumulative since its making.

    Args:
        bounds_s: Upper bounds in seconds, ascending, each inclusive; one more count takes what is above the last.
    """

    __slots__ = ("bounds_s", "counts", "sum_s")

    def __init__(self, bounds_s: Sequence[float]) -> None:
        self.bounds_s = tuple(bounds_s)
        self.counts = [0] * (len(self.bounds_s) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration.

        Args:
            seconds: The duration.
        """
        self.counts[bisect_left(self.bounds_s, seconds)] += 1
        self.sum_s += seconds

    def reading(self) -> dict[str, Any]:
        """Return bounds, counts (not cumulative over bounds) and sum, as the status page has them."""
        return {"bounds": list(self.bounds_s), "counts": list(self.counts), "sum_s": round(self.sum_s, 9)}
