"""Whether a photo is worth reading: unreadable, too small, blank, badly exposed, blurred, or none of it.

Measures  a verdict and the first reason of a closed set; sharpness on its comparable scale, brightness 0..1, pixels.
Source    the encoded photo as received; decoded to grey once, a large JPEG to a half or a quarter.
Error     a judgement by rules; `probes/images/sharpness.py` tells the scale's own. Indeterminate where a photo shows
          nothing that could be sharp, or is sharp by what may be noise alone.
Cost      mostly decoding: 12 megapixels take 40 to 60 ms of one core (inferdeck bench images). Memory: one byte a
          pixel, of WebP four and of a progressive JPEG six while it is decoded; 50 megapixels at most (300 MB), by the
          header, before a decoder sees it.
Absent    a photo that was not decoded has no sharpness and no brightness; never 0.
Explains  blurred_images -> alerts/catalogue/blurred_images.yaml
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import cv2
import numpy as np

from probes.images.header import Header, Problem, read_header
from probes.images.sharpness import LEAST_SIDE, WORKING_SIDE, Gray, sharpness, shrunk

__all__ = ["BLURRED_BELOW", "MOST_PIXELS", "REASONS", "PhotoQuality", "PhotoReason", "Verdict", "judge_photo"]

PhotoReason = Literal["unreadable", "size", "blank", "exposure", "blur"]
REASONS: Final[tuple[PhotoReason, ...]] = ("unreadable", "size", "blank", "exposure", "blur")
"""Every reason; a photo gets the first that holds."""
Verdict = Literal["sharp", "blurred", "indeterminate"]

BLURRED_BELOW: Final = 50.0
"""Requirements A6's threshold, on the comparable scale: a blur of half a percent of the longer side."""
MOST_PIXELS: Final = 50_000_000
"""More are not decoded: what phones take is 12 to 50 megapixels."""
# Of a photo below this a reader has too little left.
_LEAST_SHORT_SIDE: Final = 64
# Grey levels at 512 pixels: a covered lens has noise of one or less there, a wall in even light about two.
_BLANK_CONTRAST: Final = 2.0
# The brightest hundredth below the first, or the darkest above the second: nothing to be read by eye.
_DARK, _BRIGHT = 40.0, 225.0
_PARTS: Final = {4: cv2.IMREAD_REDUCED_GRAYSCALE_4, 2: cv2.IMREAD_REDUCED_GRAYSCALE_2}


@dataclass(frozen=True)
class PhotoQuality:
    """What there is to say of a photo.

    Attributes:
        verdict: sharp, blurred, or indeterminate.
        reason: Why it is of low quality; None when no rule finds a fault.
        problem: Why it was not decoded.
        header: Its format and size; None when they could not be read.
        sharpness: On the comparable scale; None when it cannot be told.
        brightness: Mean of the grey levels, 0..1; None when it was not decoded.
    """

    verdict: Verdict
    reason: PhotoReason | None = None
    problem: Problem | None = None
    header: Header | None = None
    sharpness: float | None = None
    brightness: float | None = None


def judge_photo(data: bytes, most_pixels: int = MOST_PIXELS) -> PhotoQuality:
    """Return what there is to say of an encoded photo; whatever the bytes are, it raises nothing.

    Args:
        data: The whole file.
        most_pixels: One with more, by its header, is not decoded.
    """
    header = read_header(data)
    if not isinstance(header, Header):
        return PhotoQuality("indeterminate", "unreadable", header)
    if header.pixels > most_pixels:
        return PhotoQuality("indeterminate", "size", "too_many_pixels", header)
    gray = _decoded(data, header)
    if gray is None:
        return PhotoQuality("indeterminate", "unreadable", "undecodable", header)
    return _judged(gray, header)


def _decoded(data: bytes, header: Header) -> Gray | None:
    """Return the photo in grey, at a size that is at least twice the working one where it has that; None if broken."""
    # Of a JPEG the decoder computes a half or a quarter from the coefficients: cheaper, and as an average would be.
    modes = _PARTS if header.format == "jpeg" else {}
    step = next((part for part in modes if max(header.width, header.height) >= 2 * WORKING_SIDE * part), 1)
    mode = modes.get(step, cv2.IMREAD_GRAYSCALE)
    try:
        gray = cv2.imdecode(np.frombuffer(data, np.uint8), mode | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        return None
    if gray is None or gray.ndim != 2 or gray.dtype != np.uint8:
        return None
    wanted = -(-header.height // step), -(-header.width // step)
    return gray.astype(np.uint8, copy=False) if gray.shape == wanted else None


def _judged(gray: Gray, header: Header) -> PhotoQuality:
    small = shrunk(gray)
    found = sharpness(small)
    brightness = float(cv2.mean(small)[0]) / 255.0
    verdict: Verdict = "sharp"
    if max(header.width, header.height) < LEAST_SIDE or not found.has_edges or found.contrast < _BLANK_CONTRAST:
        verdict = "indeterminate"
    elif found.sharpness < BLURRED_BELOW:
        verdict = "blurred"
    elif found.sharpness_less_noise < BLURRED_BELOW:
        verdict = "indeterminate"
    darkest, brightest = np.percentile(small, (1.0, 99.0)).tolist()
    reason: PhotoReason | None = None
    if min(header.width, header.height) < _LEAST_SHORT_SIDE:
        reason = "size"
    elif found.contrast < _BLANK_CONTRAST:
        reason = "blank"
    elif verdict == "blurred":
        reason = "blur"
    elif brightest < _DARK or darkest > _BRIGHT:
        reason = "exposure"
    told = None if verdict == "indeterminate" else found.sharpness
    return PhotoQuality(verdict, reason, None, header, told, brightness)
