"""Values as cells of a grid, so that distributions of any slice and time are counts; distances between such counts.

Measures  largest distance between two distribution functions on the grid, 0..1 (Kolmogorov-Smirnov, from below).
Error     at most what lies within one cell: about 1/64 of all values, none for values that are frequent themselves.
Cost      a search in 64 bounds per value; all else is counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.drift.ks import kolmogorov_p

__all__ = ["ABSENT", "CELLS", "Grid", "distance", "grid_of", "looks_p"]

CELLS: Final = 64
ABSENT: Final = CELLS
"""The place of what has no value; it counts in no distribution."""
_SAMPLE: Final = 50_000

Counts = npt.NDArray[Any]


@dataclass(frozen=True)
class Grid:
    """A feature's cells.

    Attributes:
        name: The feature.
        bounds: Upper bounds of all cells but the last, ascending.
    """

    name: str
    bounds: npt.NDArray[np.float64]

    def places(self, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Return each value's cell, `ABSENT` for NaN."""
        found = np.asarray(values)
        places = self.bounds.searchsorted(found, side="left").astype(np.uint8)
        places[np.isnan(found)] = ABSENT
        return places

    def counts(self, values: npt.ArrayLike) -> Counts:
        """Return how many values each cell has."""
        return np.bincount(self.places(values), minlength=CELLS + 1)[:CELLS]


def grid_of(name: str, *samples: npt.NDArray[Any]) -> Grid | None:
    """Return a grid over samples, each of which matters the same however large it is; None without two values.

    Args:
        name: The feature.
        samples: Numbers, NaN left out.
    """
    parts = []
    for sample in samples:
        step = max(1, len(sample) // _SAMPLE)
        thin = sample[::step]
        thin = thin[~np.isnan(thin)].astype(np.float64)
        if len(thin):
            parts.append(np.quantile(thin, np.linspace(0, 1, 1 + CELLS // max(1, len(samples)))))
    if not parts:
        return None
    bounds = np.unique(np.concatenate(parts))[: CELLS - 1]
    return Grid(name, bounds) if len(bounds) > 1 else None


def distance(before: Counts, after: Counts) -> npt.NDArray[np.float64]:
    """Return the distance of two distributions; over the last axis, 0 where either is empty.

    Args:
        before: Counts by cell.
        after: Counts by cell.
    """
    first, second = np.cumsum(before, axis=-1, dtype=np.float64), np.cumsum(after, axis=-1, dtype=np.float64)
    n, m = first[..., -1:], second[..., -1:]
    gap = np.abs(first / np.maximum(n, 1) - second / np.maximum(m, 1)).max(axis=-1)
    found: npt.NDArray[np.float64] = np.where((n[..., 0] > 0) & (m[..., 0] > 0), gap, 0.0)
    return found


def looks_p(effect: float, before: int, after: int, looks: int) -> float:
    """Return how likely so large a distance is without any change, for somebody who looked at so many places.

    Args:
        effect: The distance.
        before: Observations of one side.
        after: Of the other.
        looks: Distances that were looked at in all (Bonferroni).
    """
    if not before or not after:
        return 1.0
    return min(1.0, kolmogorov_p(effect, before, after) * max(1, looks))
