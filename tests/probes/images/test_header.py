"""Headers are read as decoders read them, and what decoders would read otherwise is refused."""

from __future__ import annotations

import struct
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.images.header import PROBLEMS, Header, read_header


def photo(kind: str, width: int = 37, height: int = 21, *options: int) -> bytes:
    """Return a small photo as a file."""
    written, data = cv2.imencode(kind, np.full((height, width), 90, np.uint8), options)
    assert written
    return data.tobytes()


def chunk(name: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def with_chunk(data: bytes, name: bytes, content: bytes) -> bytes:
    """Return the PNG with a chunk behind its header."""
    return data[:33] + chunk(name, content) + data[33:]


@pytest.mark.parametrize(
    ("kind", "told", "options"),
    [
        (".jpg", "jpeg", ()),
        (".jpg", "jpeg", (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)),
        (".png", "png", ()),
        (".webp", "webp", (cv2.IMWRITE_WEBP_QUALITY, 50)),
        (".webp", "webp", (cv2.IMWRITE_WEBP_QUALITY, 101)),
    ],
    ids=["jpeg", "progressive jpeg", "png", "webp", "lossless webp"],
)
def test_format_and_size_are_the_files_own(kind: str, told: str, options: tuple[int, ...]) -> None:
    """For what cameras and browsers write."""
    assert Header(told, 37, 21) == read_header(photo(kind, 37, 21, *options))  # type: ignore[arg-type]


def test_a_thumbnail_in_front_is_passed_over() -> None:
    """Phones put a small photo into the first segment of the large one."""
    large, small = photo(".jpg", 400, 300), photo(".jpg", 16, 12)
    segment = b"\xff\xe1" + struct.pack(">H", len(small) + 2) + small

    assert Header("jpeg", 400, 300) == read_header(large[:2] + segment + large[2:])


def test_an_extended_webp_says_its_canvas() -> None:
    """That is where a profile or an animation is told."""
    still = b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4)
    size = (999).to_bytes(3, "little") + (499).to_bytes(3, "little")

    assert Header("webp", 1000, 500) == read_header(still + size)
    assert "animated" == read_header(still[:20] + b"\x02" + still[21:] + size)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (b"hello", "unknown_format"),
        (b"GIF89a" + bytes(40), "unknown_format"),
        (b"RIFF\x00\x00\x00\x00WAVE" + bytes(40), "unknown_format"),
        (photo(".png")[:20], "truncated"),
        (photo(".png")[:-20], "truncated"),
        (photo(".jpg")[:-2], "truncated"),
        (photo(".jpg")[:60], "truncated"),
        (photo(".webp")[:-8], "truncated"),
        (photo(".png")[:16] + bytes(4) + photo(".png")[20:], "malformed"),
        (with_chunk(photo(".png"), b"acTL", bytes(8)), "animated"),
        (b"\xff\xd8\xff\xe0\x00\x01" + bytes(40), "malformed"),
        (b"\xff\xd8" + b"\xff\xe0\x00\x02" * 5000, "malformed"),
    ],
    ids=[
        "0 bytes",
        "text",
        "gif",
        "sound",
        "png header",
        "png",
        "jpeg",
        "jpeg header",
        "webp",
        "width 0",
        "animation",
        "segment of length 1",
        "segments without end",
    ],
)
def test_what_is_no_whole_photo_is_a_problem(data: bytes, problem: str) -> None:
    """And the word is one of the closed set."""
    assert problem in PROBLEMS
    assert problem == read_header(data)


def test_a_second_frame_and_thousands_of_scans_are_refused() -> None:
    """A decoder could take the larger size, or minutes."""
    data = photo(".jpg")
    frame = data.index(b"\xff\xc0")
    length = 2 + int.from_bytes(data[frame + 2 : frame + 4])
    twice = data[:frame] + data[frame : frame + length] * 2 + data[frame + length :]

    assert "malformed" == read_header(twice)
    assert "malformed" == read_header(data[:-2] + b"\xff\xda\x00\x08" * 100 + data[-2:])
    large = data[: frame + 5] + struct.pack(">HH", 7000, 7000) + data[frame + 9 :]
    assert Header("jpeg", 7000, 7000) == read_header(large)
    assert "malformed" == read_header(large[:-2] + b"\xff\xda\x00\x08" * 30 + large[-2:])


@given(st.sampled_from([".jpg", ".png", ".webp"]), st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_damage_never_raises_and_never_makes_a_size_of_0(kind: str, at: int, damage: bytes) -> None:
    """Whatever stands in the header."""
    data = photo(kind)
    found = read_header(data[:at] + damage + data[at + len(damage) :])

    assert found in PROBLEMS or (isinstance(found, Header) and found.pixels > 0)
