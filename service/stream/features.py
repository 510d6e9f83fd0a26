"""What is told of one utterance: length, language, quality, personal data, full-width letters.

Measures  characters as they came; the rest of the cleaned and masked text, as in serving (service/text, filters).
Cost      about 15 us a text without personal data; texts of the contract, 512 characters at most.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from service.filters.masking import mask
from service.text.clean import clean
from service.text.quality import Language, QualityReason, language, quality_reason

__all__ = ["LANGUAGES", "Features", "features_of"]

LANGUAGES: Final[tuple[Language, ...]] = ("zh", "en", "mixed")
# Keyboards in full-width mode: folded by cleaning, and a sign that a client has changed.
_WIDE: Final = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")


class Features(NamedTuple):
    """Of one utterance.

    Attributes:
        length: Characters as they came.
        language: Of the cleaned text.
        non_ascii: Share of its characters outside ASCII, 0..1.
        quality: Why it is of low quality; None when no rule finds a fault.
        personal: Whether personal data was masked in it.
        wide: Whether it has full-width letters or digits.
    """

    length: int
    language: Language
    non_ascii: float
    quality: QualityReason | None
    personal: bool
    wide: bool


def features_of(utterance: str) -> Features:
    """Return the features of an utterance; the text itself is not kept."""
    cleaned = clean(utterance)
    masked = mask(cleaned)
    spoken, share = language(masked.text)
    quality = quality_reason(utterance, cleaned)
    wide = not utterance.isascii() and _WIDE.search(utterance) is not None
    return Features(len(utterance), spoken, share, quality, bool(masked.counts), wide)
