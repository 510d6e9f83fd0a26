"""The character rule of the contract (row B1), and how a real review is made to fit it.

Allowed are Chinese characters of the basic plane, English letters and digits in both widths, white space,
`. , ! ? ; :` and their Chinese forms; 1 to 1,024 of them. Quotes, apostrophes, brackets, `@`, `#`, `/` and emoji are
not in the row, so they are refused. Full-width letters and digits are letters and digits (Chinese keyboards write
them); cleaning folds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from service.text.clean import clean, collapse_white_space

__all__ = [
    "ALLOWED_CHARACTERS",
    "ALLOWED_PATTERN",
    "MAX_CHARACTERS",
    "ContractShare",
    "contract_share",
    "fits_contract",
    "illegal_characters",
    "to_contract",
]

MAX_CHARACTERS = 1024
"""Most characters in a text; row B1."""

ALLOWED_CHARACTERS = (
    r" \t\n\r\u3000"
    r"A-Za-z0-9\uFF21-\uFF3A\uFF41-\uFF5A\uFF10-\uFF19"
    r"\u3007\u3400-\u4DBF\u4E00-\u9FFF"
    r".,!?;:\uFF0C\u3002\uFF01\uFF1F\uFF1B\uFF1A\uFF0E"
)
r"""
Inside of the character class, read alike by Python's `re` and by ECMA-262 without flags.

White space is spelt out because `\s` differs between the two, and only the basic plane is in it because astral ranges
cannot be written in a way that both read. U+3007 is the zero of Chinese dates.
"""

ALLOWED_PATTERN = f"^[{ALLOWED_CHARACTERS}]+$"
"""The rule as one pattern, for the contract's document; the length is told apart from it (1 to MAX_CHARACTERS)."""

_ALLOWED = re.compile(f"[{ALLOWED_CHARACTERS}]+")
_ILLEGAL = re.compile(f"[^{ALLOWED_CHARACTERS}]")
_ILLEGAL_RUN = re.compile(f"[^{ALLOWED_CHARACTERS}]+")

# Marks that have a near kin in the row keep their sense; everything else illegal becomes a space.
_KIN = str.maketrans({"、": "，", "…": "。"})


@dataclass(frozen=True)
class ContractShare:
    """How many texts fit the contract as they came and as they are sent.

    Attributes:
        texts: Texts looked at.
        before_ratio: Share that fits untouched, 0..1; 0.0 when there was no text.
        after_ratio: Share that fits after `to_contract`, 0..1; the rest held nothing that the contract allows.
    """

    texts: int
    before_ratio: float
    after_ratio: float


def illegal_characters(text: str, limit: int = 10) -> list[str]:
    """Return the characters that the contract refuses, each once, in order of appearance.

    They are named by code point ("U+0027"), because the characters themselves (controls, halves of surrogate pairs,
    marks that turn the writing direction) may not be safe in a message, a log or a terminal.

    Args:
        text: The text as received.
        limit: Most names to return; further ones are left out.
    """
    if _ILLEGAL.search(text) is None:
        return []
    # Distinct characters first: a megabyte of one illegal character must not cost a match per character.
    wrong = (f"U+{ord(character):04X}" for character in dict.fromkeys(text) if _ILLEGAL.match(character))
    return list(islice(wrong, limit))


def fits_contract(text: str) -> bool:
    """Return whether the text has 1 to MAX_CHARACTERS characters, all of them allowed."""
    return len(text) <= MAX_CHARACTERS and _ALLOWED.fullmatch(text) is not None


def to_contract(text: str, limit: int | None = MAX_CHARACTERS) -> str:
    """Return the text cleaned, with a space for whatever the contract does not allow, cut to the contract's length.

    Args:
        text: Any string.
        limit: Most characters to keep; None keeps all (training reads whole reviews).

    Returns:
        A text that fits the contract, or "" when it held nothing that the contract allows.
    """
    kept = collapse_white_space(_ILLEGAL_RUN.sub(" ", clean(text).translate(_KIN)))
    return kept if limit is None else kept[:limit].rstrip()


def contract_share(texts: Iterable[str]) -> ContractShare:
    """Return the share of texts that fit the contract untouched, and after cleaning.

    Args:
        texts: Raw review texts; they are counted, never kept.
    """
    total = before = after = 0
    for text in texts:
        total += 1
        before += fits_contract(text)
        after += fits_contract(to_contract(text))
    return ContractShare(total, before / total if total else 0.0, after / total if total else 0.0)
