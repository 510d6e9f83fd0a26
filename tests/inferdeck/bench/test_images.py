"""The shape and gate of `bench images`, and that it times what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema

from inferdeck.bench.images import SIZES, Measured, measure_size, shape_images
from inferdeck.result import Stopwatch

SCHEMA = Path(__file__).resolve().parents[3] / "inferdeck" / "schemas" / "bench_images.schema.json"
FAST = Measured(1e-3, 5e-3, 4e-3, 3e-2, 4e-16, 500_000)


def test_a_size_is_measured_and_equal() -> None:
    """On a small one: how fast is a matter of the bench, not of a test."""
    one = measure_size(320, 240, 3)

    assert one.error < 1e-14
    assert min(one.ours_s, one.classic_s, one.score_s, one.photo_s) > 0
    assert one.encoded_bytes > 1000


def test_the_result_has_the_schemas_shape() -> None:
    """With every size."""
    result = shape_images(dict.fromkeys(SIZES, FAST))
    jsonschema.validate(Stopwatch().stamp(result), json.loads(SCHEMA.read_text(encoding="utf-8")))

    assert 5.0 == result["sizes"]["4K"]["speedup"]


def test_the_gate_asks_for_speed_at_every_size_and_for_cv2s_result() -> None:
    """3.9 times is too slow, a difference in the tenth digit is not equal."""
    assert shape_images(dict.fromkeys(SIZES, FAST))["gate"]["passed"]
    assert not shape_images({"1080p": FAST, "4K": replace(FAST, classic_s=3.9e-3)})["gate"]["passed"]
    off = shape_images({"1080p": replace(FAST, error=1e-10)})
    assert not off["equal"]
    assert not off["gate"]["passed"]
