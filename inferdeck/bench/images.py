"""`inferdeck bench images`: what a photo's sharpness costs, beside the call that everybody writes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from inferdeck.bench.machine import describe, versions
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["LEAST_SPEEDUP", "SIZES", "Measured", "draw_images", "measure_size", "run_images", "shape_images"]

SIZES: Final = {"1080p": (1920, 1080), "4K": (3840, 2160), "12 megapixels": (4000, 3000)}
LEAST_SPEEDUP: Final = 4.0
"""Issue 6, item 4: of the exact variance, over cv2.Laplacian(image, CV_64F).var(), at every size."""
# Both are sums over millions of values; the other call rounds in each.
_MOST_ERROR: Final = 1e-12

Gray = npt.NDArray[np.uint8]
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Measured:
    """One size.

    Attributes:
        ours_s: Seconds of the exact variance of the Laplacian, as we compute it.
        classic_s: Seconds of cv2.Laplacian(image, CV_64F).var().
        score_s: Seconds of the comparable score, from the decoded photo.
        photo_s: Seconds of the whole judgement, from the encoded photo.
        error: Largest relative difference between the two variances, over sharp, blurred and extreme photos.
        encoded_bytes: Size of the encoded photo.
    """

    ours_s: float
    classic_s: float
    score_s: float
    photo_s: float
    error: float
    encoded_bytes: int


def measure_size(width: int, height: int, rounds: int) -> Measured:
    """Time all calls in turn, on one thread, in this process.

    Args:
        width: Pixels.
        height: Pixels.
        rounds: Rounds; medians are told.

    Raises:
        CannotRun: If OpenCV is missing.
    """
    try:
        import cv2
    except ImportError as missing:
        raise CannotRun("OpenCV is missing", "pip install 'inferdeck[images]'") from missing
    from inferdeck.bench.photos import blurred, encoded, exposed, scene
    from probes.images.quality import judge_photo
    from probes.images.sharpness import laplacian_variance, sharpness, shrunk

    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        light = scene(1, width, height)
        gray = exposed(light)
        photo = encoded(gray)
        calls: tuple[Callable[[], object], ...] = (
            lambda: laplacian_variance(gray),
            lambda: cv2.Laplacian(gray, cv2.CV_64F).var(),
            lambda: sharpness(shrunk(gray)),
            lambda: judge_photo(photo),
        )
        rows = [[_seconds(call) for call in calls] for _ in range(rounds)]
        extreme = np.indices((height, width), np.uint16).sum(0).astype(np.uint8) % np.uint8(2) * np.uint8(255)
        error = max(_error(one) for one in (gray, exposed(blurred(light, 0.01)), extreme))
    finally:
        cv2.setNumThreads(threads)
    ours, classic, score, whole = (statistics.median(column) for column in zip(*rows, strict=True))
    return Measured(ours, classic, score, whole, error, len(photo))


def _error(gray: Gray) -> float:
    import cv2

    from probes.images.sharpness import laplacian_variance

    classic = float(cv2.Laplacian(gray, cv2.CV_64F).var())
    return abs(laplacian_variance(gray) - classic) / classic


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def run_images(rounds: int, progress: Progress) -> dict[str, Any]:
    """Measure every size and return the result.

    Args:
        rounds: Of each size.
        progress: Is told what is measured and how far it is.

    Raises:
        CannotRun: If OpenCV is missing.
    """
    measured = {}
    for number, (name, (width, height)) in enumerate(SIZES.items()):
        progress(name, number / len(SIZES))
        measured[name] = measure_size(width, height, rounds)
    return shape_images(measured)


def shape_images(measured: dict[str, Measured]) -> dict[str, Any]:
    """Return the result.

    Args:
        measured: Name of the size -> what was measured.
    """
    sizes = {
        name: {
            "ours_s": one.ours_s,
            "classic_s": one.classic_s,
            "speedup": round(one.classic_s / one.ours_s, 2),
            "relative_error": one.error,
            "score_s": one.score_s,
            "photo_s": one.photo_s,
            "encoded_bytes": one.encoded_bytes,
        }
        for name, one in measured.items()
    }
    equal = all(one.error <= _MOST_ERROR for one in measured.values())
    fast = all(one.classic_s >= LEAST_SPEEDUP * one.ours_s for one in measured.values())
    return {
        "sizes": sizes,
        "equal": equal,
        "gate": {"speedup_min": LEAST_SPEEDUP, "relative_error_max": _MOST_ERROR, "passed": equal and fast},
        "machine": describe(),
        "versions": versions() | {"opencv-python-headless": version("opencv-python-headless")},
    }


def draw_images(result: dict[str, Any], console: Console) -> None:
    """Print a line per size."""
    for name, one in result["sizes"].items():
        console.print(
            f"{name}: variance of the Laplacian {one['ours_s'] * 1e3:.2f} ms, classic {one['classic_s'] * 1e3:.1f} ms, "
            f"{one['speedup']:.1f} times faster; comparable score {one['score_s'] * 1e3:.1f} ms; "
            f"a whole JPEG of {one['encoded_bytes'] / 1e6:.1f} MB {one['photo_s'] * 1e3:.0f} ms"
        )
    console.print("equal to cv2's in 64 bits" if result["equal"] else "NOT equal to cv2's in 64 bits")
    console.print(f"gate {'met' if result['gate']['passed'] else 'MISSED'}")
