"""The plain variance is OpenCV's to the last bits; the comparable scale is the same in all sizes and contrasts."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferdeck.bench.photos import blurred, exposed, scene
from probes.images.sharpness import Gray, laplacian_variance, sharpness, shrunk


def classic(gray: Gray) -> float:
    """Return what everybody computes."""
    return float(cv2.Laplacian(gray, cv2.CV_64F).var())


@given(st.integers(1, 200), st.integers(1, 90), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_variance_is_that_of_64_bits(rows: int, columns: int, seed: int) -> None:
    """For odd sizes, around the borders of the bands, single rows and single pixels."""
    gray = np.random.default_rng(seed).integers(0, 256, (rows, columns), dtype=np.uint8)

    assert laplacian_variance(gray) == pytest.approx(classic(gray), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rows", [63, 64, 65, 127, 128, 129, 1080])
def test_bands_join_without_a_seam(rows: int) -> None:
    """The largest values that there are, in rows that differ from their neighbours."""
    gray = np.zeros((rows, 1921), np.uint8)
    gray[::2, 1::2] = gray[1::2, ::2] = 255

    assert laplacian_variance(gray) == pytest.approx(classic(gray), rel=1e-14)


def test_a_flat_picture_has_none() -> None:
    """Exactly: nothing is left of two large sums."""
    assert 0.0 == laplacian_variance(np.full((300, 400), 200, np.uint8))


@pytest.mark.parametrize(
    "wrong", [np.zeros((0, 5), np.uint8), np.zeros((4, 4), np.float64), np.zeros((4, 4, 3), np.uint8)]
)
def test_what_is_no_grey_picture_is_refused(wrong: Gray) -> None:
    """NaN cannot come: the type has none."""
    with pytest.raises(ValueError, match="no grey picture"):
        laplacian_variance(wrong)


def score(gray: Gray) -> float:
    """Return the sharpness on the comparable scale."""
    return sharpness(shrunk(gray)).sharpness


@pytest.mark.parametrize("seed", range(3))
def test_sizes_can_be_compared(seed: int) -> None:
    """From 640 to 3,000 pixels within a tenth, sharp or blurred, where the plain variance differs by half."""
    for share in (0.0, 0.006):
        found = [score(exposed(blurred(scene(seed, w, w * 3 // 4, 0.0), share), noise=0.5)) for w in (640, 1600, 3000)]
        assert max(found) <= 1.1 * min(found), found


@pytest.mark.parametrize("seed", range(3))
def test_contrasts_can_be_compared(seed: int) -> None:
    """A photo at a quarter of the light keeps its score, where the plain variance is a tenth or less."""
    light = scene(seed, 1600, 1200)
    bright, dark = exposed(light, noise=0.5), exposed(light, 0.25, noise=0.5)

    assert score(dark) == pytest.approx(score(bright), rel=0.1)
    assert classic(dark) < 0.1 * classic(bright)


@pytest.mark.parametrize("texture", [0.0, 12.0, 30.0])
def test_it_falls_with_the_blur_and_50_is_half_a_percent(texture: float) -> None:
    """Whatever the photo shows."""
    light = scene(7, 1600, 1200, texture)
    found = [score(exposed(blurred(light, share))) for share in (0.0, 0.001, 0.002, 0.0035, 0.0065, 0.01)]

    assert all(high > low for high, low in pairwise(found))
    assert found[3] > 50.0 > found[4]


def test_noise_is_told_from_sharpness() -> None:
    """A dark blurred photo is sharp by its noise alone; a dark sharp one is sharp without it."""
    light = scene(7, 1600, 1200)
    noisy = sharpness(shrunk(exposed(blurred(light, 0.008), 0.2, noise=2.5)))
    sharp = sharpness(shrunk(exposed(light, 0.2, noise=2.5)))

    assert noisy.sharpness > 50.0 > noisy.sharpness_less_noise
    assert sharp.sharpness_less_noise > 100.0


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_light_that_falls_off_is_no_edge(noise: float) -> None:
    """A wall is neither sharp nor blurred."""
    ramp = np.tile(np.linspace(40, 220, 1600, dtype=np.float32), (1200, 1))

    assert not sharpness(shrunk(exposed(ramp, noise=noise))).has_edges
    assert sharpness(shrunk(exposed(scene(1)))).has_edges


@pytest.mark.parametrize("shape", [(1, 1), (1, 700), (700, 1), (2, 3), (4000, 2)])
def test_strange_sizes_are_no_error(shape: tuple[int, int]) -> None:
    """Lines and single pixels have a finite score."""
    found = sharpness(shrunk(np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape)))

    assert np.isfinite([found.sharpness, found.sharpness_less_noise, found.contrast]).all()
