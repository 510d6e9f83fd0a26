"""How sharp a picture is.

Measures  the variance of its Laplacian: as it is (`laplacian_variance`), and on a scale on which photos of all sizes
          and contrasts can be compared (`sharpness`); grey levels squared.
Source    grey pixels of 8 bits.
Error     `laplacian_variance` is exact: the sums are whole numbers, one division rounds. `sharpness`: of one scene in
          sizes from 512 to 4,000 pixels within a tenth. What shakes in one direction alone keeps its edges along it and
          seems sharper than it is; so do the blocks of a dark JPEG of low quality, and strong noise, which is why
          `sharpness_less_noise` is beside it.
Cost      0.7 ms for 1080p, 3 ms for 4K (`laplacian_variance`, bands of 64 rows: 256 KiB); `sharpness` about 4 ms,
          12 megapixels 14 ms, and 3 MB.
Absent    a picture in which nothing is that could be sharp has no `sharpness`; one below 256 pixels neither.
Explains  blurred_images -> alerts/catalogue/blurred_images.yaml

The scale. The variance of the Laplacian alone grows with the square of the contrast and falls with the size, so that
one threshold fits one camera. Here the picture is brought to 512 pixels on its longer side, smoothed a little against
noise, and the Laplacian is taken over the gradient: **the variance of the Laplacian that the photo would have at 512
pixels with a root mean square gradient of 20 grey levels a pixel**. On it 50 is a Gaussian blur of about half a percent
of the longer side (0.4 to 0.55 by scene; 20 pixels of 4,000); a sharp photo has 100 to 350, a blur of a percent 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_SIDE", "WORKING_SIDE", "Gray", "Sharpness", "laplacian_variance", "sharpness", "shrunk"]

Gray = npt.NDArray[np.uint8]

WORKING_SIDE: Final = 512
"""Pixels of the longer side at which pictures are compared."""
LEAST_SIDE: Final = 256
"""A smaller picture is too coarse to tell a blurred one from."""

# 1,920 pixels of 16 bits by 64 rows stay in the second level's cache.
_BAND_ROWS: Final = 64
_SMOOTHING: Final = 1.0
# The square of the gradient at which the scale is the plain variance: 20 grey levels a pixel.
_USUAL_GRADIENT: Final = 400.0
# What white noise of one grey level leaves after the smoothing, in the Laplacian and in the gradient, squared.
_NOISE_LAPLACIAN: Final = 0.112
_NOISE_GRADIENT: Final = 0.0505
# No camera's noise is above this at 512 pixels; what is, is texture.
_MOST_NOISE: Final = 3.0
# Rounding to whole grey levels is noise of a variance of a twelfth.
_LEAST_NOISE_SQUARED: Final = 1 / 12
_TILE: Final = 32
_QUIET_PERCENTILE: Final = 20.0
# Gradient over contrast, both at 512 pixels: light that falls off from one side to the other has 0.007 to 0.02, the
# most blurred scene that is still one 0.03, a sharp one 0.2.
_LEAST_EDGES: Final = 0.02


@dataclass(frozen=True)
class Sharpness:
    """What a picture shows of edges.

    Attributes:
        sharpness: On the comparable scale (see above), at most 800 or so.
        sharpness_less_noise: The same without what may be noise; what is sharp by noise alone is not known to be sharp.
        has_edges: Whether there is anything in it that could be sharp or blurred.
        contrast: Standard deviation of its grey levels at 512 pixels.
    """

    sharpness: float
    sharpness_less_noise: float
    has_edges: bool
    contrast: float


def laplacian_variance(gray: Gray) -> float:
    """Return the variance of the Laplacian, equal to `cv2.Laplacian(gray, cv2.CV_64F).var()`, several times faster.

    Args:
        gray: At least one pixel, [rows, columns].

    Raises:
        ValueError: If there is no pixel, or it is no grey picture of 8 bits.
    """
    if gray.ndim != 2 or gray.dtype != np.uint8 or not gray.size:
        raise ValueError(f"no grey picture of 8 bits: {gray.dtype} {gray.shape}")
    rows, total, squares = gray.shape[0], 0, 0
    for start in range(0, rows, _BAND_ROWS):
        stop = min(start + _BAND_ROWS, rows)
        # A row more on either side, since the Laplacian of a row takes in its neighbours.
        above = min(start, 1)
        band = cv2.Laplacian(gray[start - above : min(stop + 1, rows)], cv2.CV_16S)[above : above + stop - start]
        total += int(cv2.sumElems(band)[0])
        # A whole number too; the root that is taken and squared on the way leaves it a trifle off.
        squares += round(cv2.norm(band, cv2.NORM_L2SQR))
    count = gray.size
    # Whole numbers up to here: nothing is lost when two large ones nearly cancel.
    return (count * squares - total * total) / (count * count)


def shrunk(gray: Gray) -> Gray:
    """Return the picture with its longer side at 512 pixels; a smaller one as it is."""
    rows, columns = gray.shape
    longer = max(rows, columns)
    if longer <= WORKING_SIDE:
        return gray
    size = max(1, round(columns * WORKING_SIDE / longer)), max(1, round(rows * WORKING_SIDE / longer))
    return cv2.resize(gray, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def sharpness(small: Gray) -> Sharpness:
    """Return how sharp a picture is that was brought to its working size by `shrunk`.

    Args:
        small: At least one pixel, its longer side 512 pixels or less. One below 512 is taken as if it were enlarged.
    """
    smooth = cv2.GaussianBlur(small.astype(np.float32), (0, 0), _SMOOTHING)
    laplacian = cv2.Laplacian(smooth, cv2.CV_32F)
    across = cv2.Sobel(smooth, cv2.CV_32F, 1, 0, ksize=1, scale=0.5)
    down = cv2.Sobel(smooth, cv2.CV_32F, 0, 1, ksize=1, scale=0.5)
    gradient = (cv2.norm(across, cv2.NORM_L2SQR) + cv2.norm(down, cv2.NORM_L2SQR)) / small.size
    # Its mean is 0 but for the borders: the mean of the squares is its variance.
    energy = cv2.norm(laplacian, cv2.NORM_L2SQR) / small.size
    contrast = float(cv2.meanStdDev(small)[1].item())
    noise = _noise_squared(laplacian)
    quiet = max(energy - noise * _NOISE_LAPLACIAN, 0.0)
    quiet_gradient = max(gradient - noise * _NOISE_GRADIENT, 0.1 * gradient)
    unit = _USUAL_GRADIENT * (min(max(small.shape), WORKING_SIDE) / WORKING_SIDE) ** 2
    return Sharpness(
        sharpness=unit * energy / gradient if gradient > 0 else 0.0,
        sharpness_less_noise=unit * quiet / quiet_gradient if quiet_gradient > 0 else 0.0,
        has_edges=bool(contrast > 0 and gradient**0.5 >= _LEAST_EDGES * contrast),
        contrast=contrast,
    )


def _noise_squared(laplacian: cv2.typing.MatLike) -> float:
    """Return the variance of the noise, in grey levels squared, as the quietest fifth of the picture's tiles tells."""
    rows, columns = laplacian.shape
    tiles = max(1, columns // _TILE), max(1, rows // _TILE)
    energies = cv2.resize(cv2.multiply(laplacian, laplacian), tiles, interpolation=cv2.INTER_AREA)
    found = float(np.percentile(energies, _QUIET_PERCENTILE)) / _NOISE_LAPLACIAN
    return min(max(found, _LEAST_NOISE_SQUARED), _MOST_NOISE**2)
