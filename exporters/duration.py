"""How long back: the one grammar of durations, for the look-up page and the console alike."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["parse_duration"]

_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)")
_UNIT_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str) -> float:
    """Return a duration such as 90s, 15m, 1.5h or 1d in seconds; a bare number is seconds.

    Raises:
        ValueError: If it is none.
    """
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError("write a duration such as 90s, 15m, 2h or 1d")
    return float(match[1]) * _UNIT_SECONDS[match[2]]
