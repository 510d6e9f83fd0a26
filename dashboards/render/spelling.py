"""Numbers as Grafana writes them: the unit chooses the scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

__all__ = ["spell"]

_SECONDS: Final = ((86400.0, " d"), (3600.0, " h"), (60.0, " min"), (1.0, " s"), (1e-3, " ms"), (1e-6, " µs"))
_BYTES: Final = ((2.0**40, " TiB"), (2.0**30, " GiB"), (2.0**20, " MiB"), (2.0**10, " KiB"), (1.0, " B"))
_SHORT: Final = ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K"), (1.0, ""))
_HERTZ: Final = ((1e9, " GHz"), (1e6, " MHz"), (1e3, " kHz"), (1.0, " Hz"))
_SCALES: Final[dict[str, Sequence[tuple[float, str]]]] = {
    "s": _SECONDS,
    "bytes": _BYTES,
    "binBps": tuple((size, f"{word}/s") for size, word in _BYTES),
    "short": _SHORT,
    "hertz": _HERTZ,
}
_SUFFIXES: Final = {"reqps": " req/s", "rowsps": " rows/s", "celsius": " °C", "watt": " W", "none": ""}


def spell(value: float, unit: str, decimals: int | None = None) -> str:
    """Return a number in a unit.

    Args:
        value: In the unit's base.
        unit: Grafana's id of it.
        decimals: Digits behind the point; three digits in all when None.
    """
    if not math.isfinite(value):
        return "no data"
    if unit == "percentunit":
        return f"{_digits(value * 100, decimals)}%"
    if unit in _SCALES:
        scales = _SCALES[unit]
        size, word = next(((size, word) for size, word in scales if abs(value) >= size), scales[-1])
        if value == 0:
            size, word = next(scale for scale in scales if scale[0] == 1.0)
        return f"{_digits(value / size, decimals)}{word}"
    return f"{_digits(value, decimals)}{_SUFFIXES.get(unit, '')}"


def _digits(value: float, decimals: int | None) -> str:
    if math.isinf(value):
        # a finite ratio of over 1e306 has no percent any more
        return "∞" if value > 0 else "-∞"
    if decimals is not None:
        return f"{value:.{decimals}f}"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0 if value else 1
    text = f"{value:.{max(0, 3 - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
