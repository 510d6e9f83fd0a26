"""Photos are judged by what they show; whatever else the bytes are is told and costs nothing."""

from __future__ import annotations

import struct
import time
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferdeck.bench.photos import blurred, encoded, exposed, scene
from probes.images.header import PROBLEMS, Header
from probes.images.quality import BLURRED_BELOW, MOST_PIXELS, REASONS, judge_photo

KINDS = (".jpg", ".png", ".webp")


@pytest.mark.parametrize("kind", KINDS)
def test_a_sharp_photo_is_sharp(kind: str) -> None:
    """With its size, its brightness and its score."""
    found = judge_photo(encoded(exposed(scene(1)), kind))

    assert ("sharp", None, None) == (found.verdict, found.reason, found.problem)
    assert found.header is not None
    assert (1600, 1200) == (found.header.width, found.header.height)
    assert (found.sharpness or 0) > 2 * BLURRED_BELOW
    assert 0.2 < (found.brightness or 0) < 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_blurred_photo_is_blurred(kind: str) -> None:
    """A percent of the longer side."""
    found = judge_photo(encoded(exposed(blurred(scene(1), 0.01)), kind))

    assert ("blurred", "blur") == (found.verdict, found.reason)
    assert 0 < (found.sharpness or 0) < BLURRED_BELOW


@pytest.mark.parametrize("gain", [0.25, 0.12])
def test_a_dark_but_sharp_photo_is_not_blurred(gain: float) -> None:
    """So dark that nothing can be read is another fault."""
    found = judge_photo(encoded(exposed(scene(2), gain, noise=2.0)))

    assert "sharp" == found.verdict
    assert (None if gain > 0.2 else "exposure") == found.reason


def test_a_large_photo_decoded_to_a_part_is_judged_as_whole() -> None:
    """A JPEG of 3,000 pixels by half, a PNG of the same whole; 4,200 pixels by a quarter."""
    for width in (3000, 4200):
        for share in (0.0, 0.008):
            gray = exposed(blurred(scene(3, width, width * 3 // 4), share))
            jpeg, png = judge_photo(encoded(gray, ".jpg", 95)), judge_photo(encoded(gray, ".png"))
            assert jpeg.verdict == png.verdict
            assert jpeg.sharpness == pytest.approx(png.sharpness, rel=0.1)


@pytest.mark.parametrize(
    ("gray", "reason"),
    [
        (np.zeros((600, 800), np.uint8), "blank"),
        (np.full((600, 800), 255, np.uint8), "blank"),
        (exposed(np.full((600, 800), 5.0, np.float32), noise=1.0), "blank"),
        (exposed(scene(1, 800, 600), 0.1, 225.0), "exposure"),
        (exposed(scene(1, 800, 50)), "size"),
        (np.zeros((1, 1), np.uint8), "size"),
    ],
    ids=["black", "white", "covered lens", "all too bright", "a strip", "1x1"],
)
def test_other_faults_are_told_by_their_own_reason(gray: np.ndarray, reason: str) -> None:
    """None of them is a blur."""
    found = judge_photo(encoded(gray, ".png"))

    assert reason == found.reason
    assert found.verdict != "blurred"


@pytest.mark.parametrize("width", [64, 200])
def test_a_small_photo_cannot_be_told(width: int) -> None:
    """It is coarse whatever the camera did."""
    found = judge_photo(encoded(exposed(scene(1, width, width))))

    assert ("indeterminate", None, None) == (found.verdict, found.reason, found.sharpness)


def bomb(width: int, height: int) -> bytes:
    """Return a PNG that says a size, with next to nothing behind it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b""))
    told = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + told


@pytest.mark.parametrize(("width", "height"), [(10_000, 10_000), (2**31 - 1, 2**31 - 1), (MOST_PIXELS + 1, 1)])
def test_a_bomb_is_not_decoded(width: int, height: int) -> None:
    """100 megapixels and more are refused by the header: no memory, no time."""
    tracemalloc.start()
    started = time.process_time()
    found = judge_photo(bomb(width, height))
    took, (_now, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert ("indeterminate", "size", "too_many_pixels") == (found.verdict, found.reason, found.problem)
    assert took < 0.5
    assert peak < 1_000_000


def test_the_bound_is_the_callers() -> None:
    """A photo of exactly as many pixels is judged."""
    data = encoded(exposed(scene(1, 640, 480)))

    assert judge_photo(data, 640 * 480).problem is None
    assert "too_many_pixels" == judge_photo(data, 640 * 480 - 1).problem


@pytest.mark.parametrize(
    "data", [b"", b"no photo", b"GIF89a" + bytes(99), bomb(500, 400)], ids=["0", "text", "gif", "png"]
)
def test_what_cannot_be_decoded_is_unreadable(data: bytes) -> None:
    """The last one has a good header and too few pixels behind it, or those that it has are blank."""
    found = judge_photo(data)

    assert "indeterminate" == found.verdict
    assert found.reason in {"unreadable", "blank"}
    assert found.sharpness is None


@given(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.integers(1, 40))
@settings(max_examples=80, deadline=None)
def test_damage_is_told_and_never_raised(kind: str, seed: int, bytes_changed: int) -> None:
    """Whatever is changed or cut off; words stay those of the closed sets."""
    rng = np.random.default_rng(seed)
    data = bytearray(PHOTOS[kind])
    for at in rng.integers(0, len(data), bytes_changed).tolist():
        data[at] = int(rng.integers(0, 256))
    found = judge_photo(bytes(data[: int(rng.integers(1, len(data) + 1))]))

    assert found.verdict in {"sharp", "blurred", "indeterminate"}
    assert found.reason is None or found.reason in REASONS
    assert found.problem is None or found.problem in PROBLEMS
    assert found.header is None or isinstance(found.header, Header)
    assert found.sharpness is None or np.isfinite(found.sharpness)


PHOTOS = {kind: encoded(exposed(scene(5, 320, 240)), kind) for kind in KINDS}
