"""What rows tell of photos' sharpness, by the kind of device."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from exporters.aggregate import aggregate
from exporters.buckets import SHARPNESS_BUCKETS
from exporters.names_inputs import DEVICE_TYPES, QUALITY_REASONS
from probes.images.quality import BLURRED_BELOW, REASONS, PhotoReason
from probes.schema import FIXED_COLUMNS, KINDS

STRINGS = ["", "mobile", "web", "fridge"]
NAME = "model_image_sharpness_score"
DTYPE = np.dtype(
    [(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS] + [("photo.quality/sharpness", "<f8")]
)


def rows(*found: tuple[int, float]) -> np.ndarray:
    """Rows of (device type's id, sharpness)."""
    table = np.zeros(len(found), DTYPE)
    table["confidence"], table["tokens"], table["input_length"] = np.nan, -1, -1
    for at, (device, score) in enumerate(found):
        table["device_type"][at], table["photo.quality/sharpness"][at] = device, score
    return table


def test_scores_are_told_by_device() -> None:
    """A device without a word and one of another word are the unknown ones."""
    found = aggregate(rows((1, 14.0), (1, 49.999), (1, 50.5), (2, 240.0), (0, 1.0), (3, 2.0)), STRINGS, [])
    told = found.histograms[NAME]
    below = SHARPNESS_BUCKETS.index(BLURRED_BELOW) + 1

    assert {("mobile",): 3, ("web",): 1, ("unknown",): 2} == {of: sum(one.counts) for of, one in told.items()}
    assert 2 == sum(told["mobile",].counts[:below])
    assert round((14.0 + 49.999 + 50.5) * 1e9) == told["mobile",].total


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf, -1.0, 1e300])
def test_what_is_no_score_is_left_out(score: float) -> None:
    """Texts have none, and a damaged row has anything."""
    assert NAME not in aggregate(rows((1, score)), STRINGS, []).histograms


def test_services_without_photos_add_nothing() -> None:
    """Their rows have no such column."""
    table = np.zeros(3, [(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS])

    assert NAME not in aggregate(table, STRINGS, []).histograms


def test_words_and_threshold_are_those_of_the_probe() -> None:
    """One name for one thing, though neither part imports the other."""
    assert get_args(PhotoReason) == REASONS
    assert set(REASONS) <= set(QUALITY_REASONS)
    assert BLURRED_BELOW in SHARPNESS_BUCKETS
    assert "unknown" == DEVICE_TYPES[-1]
