"""Rows into counts of what requests bring: pure and vectorised, like `aggregate`, whose part this is.

Source   columns `request/...` that the service's filter chain sets; apps without them add nothing.
Error    none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.names_inputs import (
    DEAD_LETTER_RESULTS,
    FILTER_LINKS,
    MASK_FORMATS,
    MODALITIES,
    PII_KINDS,
    QUALITY_REASONS,
)
from exporters.totals import Totals

__all__ = ["count_inputs"]


def count_inputs(rows: npt.NDArray[Any], strings: Sequence[str], delta: Totals) -> None:
    """Add what the filter chain told of *rows* to *delta*.

    Args:
        rows: Structured array of rows.
        strings: The ring file's string table.
        delta: Where to add.
    """
    for (reason, modality), count in _pairs(rows, strings, "quality_reason", "quality_modality"):
        labels = (_known(modality, MODALITIES, "text"), _known(reason, QUALITY_REASONS))
        delta.add("model_low_quality_input_total", labels, count)
    for (kinds, mask_format), count in _pairs(rows, strings, "pii_kinds", "pii_mask_format"):
        # A request counts once for each kind that is in it; two unknown ones are one "other".
        for kind in {_known(kind, PII_KINDS) for kind in kinds.split(",")}:
            delta.add("model_pii_masked_total", (kind, _known(mask_format, MASK_FORMATS)), count)
    for (link, _), count in _pairs(rows, strings, "filter_failed"):
        delta.add("model_filter_failures_total", (_known(link, FILTER_LINKS),), count)
    for (result, _), count in _pairs(rows, strings, "dead_letter"):
        delta.add("model_dead_letters_total", (_known(result, DEAD_LETTER_RESULTS, "no_room"),), count)


def _known(word: str, words: Sequence[str], otherwise: str = "other") -> str:
    return word if word in words else otherwise


def _pairs(
    rows: npt.NDArray[Any], strings: Sequence[str], column: str, beside: str | None = None
) -> list[tuple[tuple[str, str], int]]:
    """Return the texts of one or two columns that occur together, with how often; rows without the first are left."""
    names = rows.dtype.names or ()
    if f"request/{column}" not in names:
        return []
    first = rows[f"request/{column}"].astype(np.int64)
    there = first != 0
    if not there.any():
        return []
    second = np.zeros(int(there.sum()), np.int64)
    if beside is not None and f"request/{beside}" in names:
        second = rows[f"request/{beside}"][there].astype(np.int64)
    found, counts = np.unique(np.stack([first[there], second]), axis=1, return_counts=True)

    def text(index: int) -> str:
        # 0 is absent; an index that the table does not have is some other word
        return strings[index] if 0 < index < len(strings) else ""

    return [((text(a), text(b)), int(count)) for (a, b), count in zip(found.T.tolist(), counts.tolist(), strict=True)]
