"""Shares of a text's characters by class: what drift compares, since a changed input format shows there first.

Measures  characters outside ASCII, digits, and ASCII that is neither letter nor digit (spaces, marks); ratios 0..1.
Source    the text as received.
Error     exact.
Cost      two passes in C over at most 1,024 characters: below a microsecond for a usual text.
Absent    None for an empty text.
Explains  data_drift_score (exporters/drift)
"""

from __future__ import annotations

import string
from typing import Final, NamedTuple

__all__ = ["CharacterShares", "character_shares"]

_DIGITS: Final = string.digits.encode()
_LETTERS_AND_DIGITS: Final = (string.ascii_letters + string.digits).encode()


class CharacterShares(NamedTuple):
    """Shares of a text's characters, each 0..1.

    Attributes:
        non_ascii_ratio: Outside ASCII: Chinese, in this service's texts.
        digit_ratio: 0 to 9.
        mark_ratio: ASCII that is neither letter nor digit: spaces and marks.
    """

    non_ascii_ratio: float
    digit_ratio: float
    mark_ratio: float


def character_shares(text: str) -> CharacterShares | None:
    """Return the shares, None for an empty text.

    Args:
        text: As received.
    """
    if not text:
        return None
    size = len(text)
    plain = text.encode("ascii", "ignore")
    marks = len(plain.translate(None, _LETTERS_AND_DIGITS))
    digits = len(plain) - len(plain.translate(None, _DIGITS))
    return CharacterShares((size - len(plain)) / size, digits / size, marks / size)
