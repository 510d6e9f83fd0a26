"""Homogeneity of categories: a sliding window of words against their counts in a reference.

Measures  Cramer's V, an effect size of 0..1, and the chi-square test's p.
Source    words as they come, in batches.
Error     V none; p by the chi-square approximation, which is rough where a category is expected fewer than 5 times.
Cost      O(categories) per check, no sort.
Absent    None while the window is empty, or where only one category is known and seen.
Memory    one number per place of the window, and at most 64 categories; others are one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_CATEGORIES", "StreamCategories", "chi_square_p", "cramers_v"]

MOST_CATEGORIES: Final = 64

Counts = npt.NDArray[np.int64]


def cramers_v(reference: Counts, window: Counts) -> float | None:
    """Return Cramer's V of the table of two rows, each row weighted the same whatever its sum.

    Unweighted, a small window beside a large reference has a small V however different it is: V would measure the
    sizes. Weighted, it is 0 for equal shares and 1 where no category is in both.

    Args:
        reference: Counts by category.
        window: Counts by category, in the same order.
    """
    if not reference.sum() or not window.sum():
        return None
    p, q = reference / reference.sum(), window / window.sum()
    seen = (p + q) > 0
    if seen.sum() < 2:
        return None
    return math.sqrt(0.5 * float(((p - q)[seen] ** 2 / (p + q)[seen]).sum()))


def chi_square_p(reference: Counts, window: Counts) -> float:
    """Return the p of Pearson's chi-square test that both rows of counts come from the same shares.

    Args:
        reference: Counts by category, their sum above 0.
        window: Counts by category, their sum above 0.
    """
    table = np.stack([reference, window]).astype(np.float64)
    table = table[:, table.sum(axis=0) > 0]
    freedom = table.shape[1] - 1
    if freedom < 1:
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return _upper_tail(float(((table - expected) ** 2 / expected).sum()), freedom)


def _upper_tail(x: float, freedom: int) -> float:
    """Return the chi-square distribution's upper tail, by the finite sums for whole degrees of freedom (NIST 8.4)."""
    half = x / 2
    if freedom % 2:
        total, term = math.erfc(math.sqrt(half)), math.exp(-half) * math.sqrt(half) / math.gamma(1.5)
        for k in range(1, (freedom + 1) // 2):
            total += term
            term *= half / (k + 0.5)
        return min(1.0, total)
    total, term = 0.0, math.exp(-half)
    for k in range(freedom // 2):
        total += term
        term *= half / (k + 1)
    return min(1.0, total)


class StreamCategories:
    """The window of one category column.

    Args:
        reference: Word -> how often it is in the training set.
        window: Latest observations that count.

    Raises:
        ValueError: If the reference is empty, holds a negative count or more than 64 words, or the window is below one.
    """

    def __init__(self, reference: Mapping[str, int], window: int) -> None:
        if not sum(reference.values()) or min(reference.values()) < 0:
            raise ValueError("the reference holds no counts, or negative ones")
        if len(reference) > MOST_CATEGORIES:
            raise ValueError(f"the reference holds {len(reference)} categories, over {MOST_CATEGORIES}")
        if window < 1:
            raise ValueError(f"a window of {window} observations")
        self.window = window
        self._place = {word: place for place, word in enumerate(sorted(reference))}
        # The last is every word that the reference does not have.
        self._reference = np.array([reference[word] for word in self._place] + [0], dtype=np.int64)
        self._ring = np.zeros(window, dtype=np.int8)
        self._next = self._filled = 0

    @property
    def size(self) -> int:
        """Observations in the window."""
        return self._filled

    @property
    def reference_size(self) -> int:
        """Observations of the reference."""
        return int(self._reference.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._reference.nbytes + self._ring.nbytes

    def extend(self, words: Sequence[str]) -> None:
        """Take observations, the oldest first."""
        other = len(self._place)
        for word in words[-self.window :]:
            self._ring[self._next] = self._place.get(word, other)
            self._filled = max(self._filled, self._next + 1)
            self._next = (self._next + 1) % self.window

    def effect(self) -> float | None:
        """Return Cramer's V, None where it has no meaning."""
        return cramers_v(self._reference, self._counts())

    def p_value(self) -> float:
        """Return the p of the chi-square test; 1 while there is no observation."""
        return chi_square_p(self._reference, self._counts()) if self._filled else 1.0

    def _counts(self) -> Counts:
        return np.bincount(self._ring[: self._filled], minlength=len(self._reference)).astype(np.int64)
