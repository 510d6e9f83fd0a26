"""Photos made by arithmetic: a scene of shapes, lettering and texture, exposed and blurred as wanted.

No picture of anybody is needed to measure or to drill, and the same seed gives the same photo on every machine.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

__all__ = ["blurred", "encoded", "exposed", "scene"]

Light = npt.NDArray[np.float32]
Gray = npt.NDArray[np.uint8]

_TEXTURE_SIDE: Final = 512
_SHAPES: Final = 25


def scene(seed: int, width: int = 1600, height: int = 1200, texture: float = 12.0) -> Light:
    """Return a sharp scene in grey levels, before exposure.

    Args:
        seed: Draws shapes and texture; the same scene in every size but for the texture, which is as fine in each.
        width: Pixels.
        height: Pixels.
        texture: Standard deviation of the texture, in grey levels.
    """
    rng = np.random.default_rng(seed)
    light = np.full((height, width), rng.uniform(90, 160), np.float32)
    light += np.linspace(-30, 30, width, dtype=np.float32)[None, :] * np.float32(rng.uniform(-1, 1))
    canvas = light.astype(np.uint8)
    unit = max(width, height) / 100
    for _ in range(_SHAPES):
        _draw(canvas, rng, unit)
    # As in nature, amplitude falls with the frequency.
    frequency = np.hypot(
        *np.meshgrid(np.fft.fftfreq(_TEXTURE_SIDE), np.fft.rfftfreq(_TEXTURE_SIDE), indexing="ij"), dtype=np.float64
    )
    frequency[0, 0] = 1.0
    phases = np.exp(2j * np.pi * rng.random(frequency.shape)) / frequency
    pattern = np.fft.irfft2(phases, s=(_TEXTURE_SIDE, _TEXTURE_SIDE))
    pattern *= texture / pattern.std()
    tiles = height // _TEXTURE_SIDE + 1, width // _TEXTURE_SIDE + 1
    return canvas.astype(np.float32) + np.tile(pattern, tiles)[:height, :width].astype(np.float32)


def _draw(canvas: Gray, rng: np.random.Generator, unit: float) -> None:
    """Draw one shape or word; places and sizes are drawn as shares of the canvas."""
    height, width = canvas.shape
    shade, kind = int(rng.integers(20, 236)), int(rng.integers(0, 3))
    x, y, radius = int(rng.random() * width), int(rng.random() * height), int(rng.uniform(2, 14) * unit)
    corners = rng.uniform(-1, 1, (4, 2))
    letters = int(rng.integers(3, 12))
    if kind == 0:
        cv2.circle(canvas, (x, y), radius, shade, -1, cv2.LINE_AA)
    elif kind == 1:
        cv2.fillPoly(canvas, [(np.array([x, y]) + radius * corners).astype(np.int32)], shade, cv2.LINE_AA)
    else:
        word, size = "Review 12345"[:letters], radius / 40
        width_of_line = max(1, radius // 20)
        cv2.putText(canvas, word, (x - radius, y), cv2.FONT_HERSHEY_SIMPLEX, size, shade, width_of_line, cv2.LINE_AA)


def blurred(light: Light, share: float) -> Light:
    """Return the scene out of focus.

    Args:
        light: The scene.
        share: Standard deviation of the Gaussian, as a share of the longer side; 0 leaves it.
    """
    if share <= 0:
        return light
    return cv2.GaussianBlur(light, (0, 0), share * max(light.shape)).astype(np.float32, copy=False)


def exposed(light: Light, gain: float = 1.0, offset: float = 0.0, noise: float = 1.5, seed: int = 0) -> Gray:
    """Return what a camera makes of the scene: grey levels of 8 bits, with its noise.

    Args:
        light: The scene.
        gain: 1 is well exposed, 0.15 dark.
        offset: Grey levels added to all.
        noise: Standard deviation of the camera's noise, in grey levels.
        seed: Draws the noise.
    """
    rng = np.random.default_rng(seed)
    levels = light * np.float32(gain) + np.float32(offset) + rng.normal(0.0, noise, light.shape).astype(np.float32)
    gray: Gray = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    return gray


def encoded(gray: Gray, kind: str = ".jpg", quality: int = 90) -> bytes:
    """Return the photo as a file.

    Args:
        gray: The photo.
        kind: .jpg, .png or .webp.
        quality: Of JPEG and WebP.
    """
    options = {".jpg": [cv2.IMWRITE_JPEG_QUALITY, quality], ".webp": [cv2.IMWRITE_WEBP_QUALITY, quality]}.get(kind, [])
    written, data = cv2.imencode(kind, gray, options)
    if not written:
        raise ValueError(f"no {kind} could be written")
    return data.tobytes()
