"""Rows into counts: how sharp photos are, by the kind of device that sent them.

Source   columns of the stage `photo.quality`, where rows have them.
Error    none; a score is rounded to a billionth. A photo of which it cannot be told is left out, never 0.
Cost     O(rows) in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.names_inputs import DEVICE_TYPES
from exporters.totals import Labels, Totals

__all__ = ["count_images"]

Rows = npt.NDArray[Any]
Observe = Callable[[Totals, str, Sequence[Labels], npt.NDArray[np.int64], npt.NDArray[Any]], None]

_SHARPNESS: Final = "photo.quality/sharpness"
# The scale ends at 800; what is beyond a million is a damaged row, and would be no whole number of 64 bits.
_MOST: Final = 1e6
_BILLION: Final = 1_000_000_000


def count_images(rows: Rows, strings: Sequence[str], delta: Totals, observe: Observe) -> None:
    """Add the sharpness of photos.

    Args:
        rows: Structured array with the columns of docs/architecture.md, section 2.
        strings: The ring file's string table.
        delta: Where to add.
        observe: Adds observations to a histogram.
    """
    if _SHARPNESS not in (rows.dtype.names or ()):
        return
    scores = rows[_SHARPNESS]
    with np.errstate(invalid="ignore"):
        judged = (scores >= 0.0) & (scores < _MOST)
    if not judged.any():
        return
    # The last word is for a device that did not say what it is, or that nobody knows.
    groups = np.full(int(judged.sum()), len(DEVICE_TYPES) - 1, np.int64)
    devices = rows["device_type"][judged]
    for index, text in enumerate(strings):
        if text in DEVICE_TYPES:
            groups[devices == index] = DEVICE_TYPES.index(text)
    steps = np.rint(scores[judged] * _BILLION).astype(np.int64)
    observe(delta, "model_image_sharpness_score", [(device,) for device in DEVICE_TYPES], groups, steps)
