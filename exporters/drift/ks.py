"""Two-sample Kolmogorov-Smirnov statistic of a sliding window against a fixed reference.

Measures  largest distance between two distribution functions; ratio 0..1, an effect size.
Source    numbers as they come, in batches.
Error     none: the same float operations as scipy.stats.ks_2samp, ties included.
Cost      a value O(log reference) when it comes; a check one sort of the window, or one running sum over the cells.
Absent    None while the window is empty; NaN is no observation and is left out.
Memory    two or three numbers per distinct value of the reference and one per place of the window, whatever comes.

The reference cuts the line into cells: its distinct values, and the gaps before, between and behind them. Which cell a
value falls into is all that the statistic needs, so the window keeps cell numbers and no values.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["StreamKS", "kolmogorov_p"]

Floats = npt.NDArray[np.float64]

# Measured: sorting 5,000 cell numbers takes as long as the running sum over the 20,001 cells of a reference of 10,000.
_CELLS_PER_SORTED: Final = 4


class StreamKS:
    """The window of one feature.

    Args:
        reference: Numbers of the training set, at least one, all finite.
        window: Latest observations that count, at least one.

    Raises:
        ValueError: If the reference is empty or holds NaN or infinities, or the window is below one.
    """

    def __init__(self, reference: npt.ArrayLike, window: int) -> None:
        known = np.asarray(reference, dtype=np.float64).ravel()
        if not known.size:
            raise ValueError("the reference is empty")
        if not np.isfinite(known).all():
            raise ValueError("the reference holds NaN or infinities")
        if window < 1:
            raise ValueError(f"a window of {window} observations")
        self.window = window
        self.reference_size = known.size
        self._points, counts = np.unique(known, return_counts=True)
        # A last one that equals nothing, for values behind all points.
        self._padded = np.append(self._points, np.nan)
        share = np.concatenate([[0.0], np.cumsum(counts) / known.size])
        # Cells: gap 0, point 0, gap 1, ... The reference's distribution function at the end of a cell, and before it.
        self._upto = np.repeat(share, 2)[1:]
        self._before = np.repeat(share, 2)[:-1]
        self._ring = np.zeros(window, dtype=np.int32)
        self._next = self._filled = 0
        counting = window * _CELLS_PER_SORTED > self._upto.size
        self._counts = np.zeros(self._upto.size, dtype=np.int32) if counting else None
        # Kept: an array of this size made anew is memory that the system hands out page by page.
        self._distance = np.empty(self._upto.size if counting else 0)
        self._steps = np.arange(window + 1, dtype=np.float64)

    @property
    def size(self) -> int:
        """Observations in the window."""
        return self._filled

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; the same from the first observation to the last."""
        held: list[npt.NDArray[Any]] = [self._points, self._padded, self._upto, self._before, self._ring]
        held += [self._distance, self._steps, *([] if self._counts is None else [self._counts])]
        return sum(array.nbytes for array in held)

    def extend(self, values: npt.ArrayLike) -> int:
        """Take observations, the oldest first; the oldest ones of the window make room.

        Args:
            values: Numbers; infinities lie beyond all others, NaN are left out.

        Returns:
            How many were NaN.
        """
        offered = np.asarray(values, dtype=np.float64).ravel()
        found = offered[~np.isnan(offered)]
        cells = self._cells_of(found[-self.window :])
        while cells.size:
            part, cells = cells[: self.window - self._next], cells[self.window - self._next :]
            self._put(part)
        return int(offered.size - found.size)

    def statistic(self) -> float | None:
        """Return the distance, None while there is no observation."""
        if not self._filled:
            return None
        return self._by_sorting() if self._counts is None else self._by_counting(self._counts)

    def _cells_of(self, values: Floats) -> npt.NDArray[np.int32]:
        places = self._points.searchsorted(values)
        cells: npt.NDArray[np.int32] = (2 * places + (self._padded[places] == values)).astype(np.int32)
        return cells

    def _put(self, cells: npt.NDArray[np.int32]) -> None:
        """Write cells that fit before the ring's end."""
        there = slice(self._next, self._next + cells.size)
        if self._counts is not None:
            gone = self._ring[there][: max(0, self._filled - self._next)]
            np.subtract.at(self._counts, gone, 1)
            np.add.at(self._counts, cells, 1)
        self._ring[there] = cells
        self._filled = max(self._filled, there.stop)
        self._next = there.stop % self.window

    def _by_sorting(self) -> float:
        # Of equal ones the last has the window's function at that value, the first the one before it.
        cells, n = np.sort(self._ring[: self._filled]), self._filled
        steps = self._steps[: n + 1] / n
        above = (steps[1:] - self._upto[cells]).max()
        below = (self._before[cells] - steps[:-1]).max()
        return float(max(above, below, 0.0))

    def _by_counting(self, counts: npt.NDArray[np.int32]) -> float:
        distance = np.cumsum(counts, dtype=np.float64, out=self._distance)
        distance /= self._filled
        distance -= self._upto
        return float(max(distance.max(), -distance.min()))


def kolmogorov_p(statistic: float, first: int, second: int) -> float:
    """Return about how likely a distance at least as large is where both samples come from one distribution.

    Kolmogorov's series with the correction of Stephens (1970) for finite samples; up to a tenth below the exact value,
    and too large where values are tied, as the test then is conservative.

    Args:
        statistic: The distance, 0..1.
        first: Size of one sample, at least 1.
        second: Size of the other.
    """
    root = math.sqrt(first * second / (first + second))
    x = (root + 0.12 + 0.11 / root) * statistic
    # Below, the series converges slowly and its sum is 1 to twelve digits.
    if x < 0.2:
        return 1.0
    terms = (math.exp(-2.0 * k * k * x * x) for k in range(1, 101))
    total = sum(term if k % 2 == 0 else -term for k, term in enumerate(terms))
    return min(1.0, max(0.0, 2.0 * total))
