"""What an encoded photo says of itself, read before anything is decoded.

Measures  format, width and height in pixels, whether it is animated; of JPEG, PNG and WebP.
Source    the first bytes, and of a JPEG its segments up to the frame.
Error     none; what a decoder would read otherwise (two frames, a height that comes later, no end) is a Problem here.
Cost      microseconds: a dozen segments; two searches over the bytes.
Absent    what cannot be read is a Problem, a word from a closed set; a size is never guessed.
Explains  blurred_images -> alerts/catalogue/blurred_images.yaml (what is no photo is none that is blurred)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["PROBLEMS", "Format", "Header", "Problem", "read_header"]

Format = Literal["jpeg", "png", "webp"]
Problem = Literal["empty", "unknown_format", "malformed", "truncated", "animated", "too_many_pixels", "undecodable"]
PROBLEMS: Final[tuple[Problem, ...]] = (
    "empty",
    "unknown_format",
    "malformed",
    "truncated",
    "animated",
    "too_many_pixels",
    "undecodable",
)
"""Why a photo is not decoded, or cannot be."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
# Start of frame: C0..CF less DHT (C4), JPG (C8) and DAC (CC).
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_START_OF_SCAN: Final = 0xDA
# Cameras write about ten segments, editors some hundred: a profile or a comment may take several of 64 KiB.
_MOST_SEGMENTS: Final = 1_000
# A progressive photo has about ten scans. Each is a pass over all its coefficients, whatever its length: thousands of
# them in a few kilobytes take minutes.
_MOST_SCANS: Final = 64
# Scans times pixels: two seconds and a half of a core at most.
_MOST_SCANNED: Final = 1_000_000_000
_END_OF_IMAGE: Final = b"\xff\xd9"


@dataclass(frozen=True)
class Header:
    """An encoded photo's own word.

    Attributes:
        format: How it is encoded.
        width: Pixels.
        height: Pixels.
    """

    format: Format
    width: int
    height: int

    @property
    def pixels(self) -> int:
        """Width times height."""
        return self.width * self.height


def read_header(data: bytes) -> Header | Problem:
    """Return what the photo says of itself, or why it is not one that may be decoded.

    Args:
        data: The whole file.
    """
    if not data:
        return "empty"
    if data.startswith(_PNG):
        return _png(data)
    if data.startswith(_JPEG):
        return _jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return "unknown_format"


def _sized(kind: Format, width: int, height: int) -> Header | Problem:
    return Header(kind, width, height) if width > 0 and height > 0 else "malformed"


def _png(data: bytes) -> Header | Problem:
    # length, IHDR, width, height, five more bytes, checksum
    if len(data) < 33:
        return "truncated"
    if data[8:16] != b"\x00\x00\x00\x0dIHDR":
        return "malformed"
    # An animation says so in front of its first picture's bytes.
    first = data.find(b"IDAT")
    if first < 0 or data.rfind(b"IEND") < first:
        return "truncated"
    if b"acTL" in data[33:first]:
        return "animated"
    return _sized("png", int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))


def _jpeg(data: bytes) -> Header | Problem:
    at, found = 2, None
    for _ in range(_MOST_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":
            at += 1
        if at + 4 > len(data):
            return "truncated"
        if data[at] != 0xFF:
            return "malformed"
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if marker == _START_OF_SCAN:
            return _scans(data, at, found)
        if length < 2:
            return "malformed"
        if marker in _FRAMES:
            if found is not None or length < 8:
                return "malformed"
            found = int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + length
    return "malformed"


def _scans(data: bytes, start: int, frame: tuple[int, int] | None) -> Header | Problem:
    if frame is None:
        return "malformed"
    scans = data.count(b"\xff\xda", start)
    if scans > _MOST_SCANS or scans * frame[0] * frame[1] > _MOST_SCANNED:
        return "malformed"
    if data.rfind(_END_OF_IMAGE, start) < 0:
        return "truncated"
    return _sized("jpeg", *frame)


def _webp(data: bytes) -> Header | Problem:
    if len(data) < 30:
        return "truncated"
    if len(data) < 8 + int.from_bytes(data[4:8], "little"):
        return "truncated"
    chunk = data[12:16]
    if chunk == b"VP8X":
        if data[20] & 0x02:
            return "animated"
        size = 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    elif chunk == b"VP8L":
        if data[20] != 0x2F:
            return "malformed"
        bits = int.from_bytes(data[21:25], "little")
        size = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif chunk == b"VP8 ":
        if data[23:26] != b"\x9d\x01\x2a":
            return "malformed"
        size = int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    else:
        return "malformed"
    return _sized("webp", *size)
