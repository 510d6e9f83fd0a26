"""Long texts as windows of tokens that overlap, each cut at the end of a sentence where one is near (row C2).

A window holds 512 tokens and the next one starts 128 tokens before its end. It ends behind the last sentence that ends
past 60% of it; where none does, it is full. Every token is in a window, none in more than two, and the order is kept.
Only what is read beyond the overlap counts as new, so that no token weighs twice when windows' answers are merged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

__all__ = [
    "CHUNKING",
    "CHUNKING_VERSION",
    "Chunking",
    "Span",
    "chunking_fingerprint",
    "chunking_for",
    "sentence_ends",
    "spans",
]

CHUNKING_VERSION: Final = 1
"""A change of behaviour is a new version, as of a step of the cleaning."""

# Chinese marks end a sentence wherever they stand; of ASCII's, "3.5" and "www.x" must not be cut.
_CHINESE_ENDS: Final = frozenset("。！？；…")
_ASCII_ENDS: Final = frozenset(".!?;")


@dataclass(frozen=True)
class Chunking:
    """How long texts are cut.

    Attributes:
        size: Most tokens of a window.
        overlap: Tokens of a window that the next one has as well.
        earliest: Share of a window before which no sentence's end cuts it, 0..1.
    """

    size: int = 512
    overlap: int = 128
    earliest: float = 0.6

    def __post_init__(self) -> None:
        """Refuse what would not move on from one window to the next."""
        if not 0 <= self.overlap < self.least <= self.size:
            raise ValueError(
                f"a window of {self.size} with overlap {self.overlap}, cut from {self.earliest} on, stands"
            )

    @property
    def least(self) -> int:
        """Fewest tokens of a window that another one follows."""
        return max(1, int(self.size * self.earliest) + 1) if self.earliest < 1 else self.size


CHUNKING: Final = Chunking()
"""Requirement C2."""


class Span(NamedTuple):
    """A window as places in the text's tokens.

    Attributes:
        start: First token.
        end: Behind the last one.
        new: Tokens that no window before it has.
    """

    start: int
    end: int
    new: int


def chunking_for(max_tokens: int) -> Chunking:
    """Return the chunking for a model that takes so many tokens: row C2's, or the same shares of a smaller one."""
    if max_tokens >= CHUNKING.size:
        return CHUNKING
    return Chunking(max_tokens, max_tokens * CHUNKING.overlap // CHUNKING.size, CHUNKING.earliest)


def sentence_ends(text: str, offsets: Sequence[tuple[int, int]]) -> list[bool]:
    """Return for each token whether a sentence ends with it.

    Args:
        text: The text that was tokenized.
        offsets: Start and end of each token in it, in characters.
    """
    return [_ends(text, end) if end > start else False for start, end in offsets]


def _ends(text: str, end: int) -> bool:
    last = text[end - 1]
    if last in _CHINESE_ENDS:
        return True
    return last in _ASCII_ENDS and (end == len(text) or text[end].isspace())


def spans(ends: Sequence[bool], chunking: Chunking = CHUNKING) -> list[Span]:
    """Return the windows of a text, in order; none for a text without tokens.

    Args:
        ends: For each token whether a sentence ends with it.
        chunking: Size, overlap and where a cut may be.
    """
    found: list[Span] = []
    start = seen = 0
    while seen < len(ends):
        end = start + chunking.size
        if end >= len(ends):
            end = len(ends)
        else:
            cuts = range(end, start + chunking.least - 1, -1)
            end = next((cut for cut in cuts if ends[cut - 1]), end)
        found.append(Span(start, end, end - seen))
        seen, start = end, end - chunking.overlap
    return found


# Cuts of made-up sentence ends: a changed behaviour shows in the fingerprint even when its author forgot the version.
_SPECIMENS: Final = ("", "a.b 3.5 c. d! 好。吗？x", "好" * 700, "好。" * 700, "好" * 400 + "。" + "坏" * 900)


def chunking_fingerprint(chunking: Chunking = CHUNKING) -> str:
    """Return 16 hexadecimal digits that change with the parameters, the version, or what is cut where."""
    outcomes = [
        spans(sentence_ends(text, [(place, place + 1) for place in range(len(text))]), chunking) for text in _SPECIMENS
    ]
    told = json.dumps([CHUNKING_VERSION, asdict(chunking), outcomes])
    return hashlib.sha256(told.encode()).hexdigest()[:16]
