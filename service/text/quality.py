"""Whether a text is worth judging: encoding damage, markup, encoded bytes, repetition, emptiness; and its language mix.

Measures  reasons from a closed set, and the share of characters outside ASCII (0..1) as the language mix.
Source    the text as received, and the same text cleaned.
Error     a judgement by rules; of 6,000 real reviews of both languages made to fit the contract one is marked.
Cost      O(characters), no allocation per character; texts of the contract, 1,024 at most.
Absent    a text without a fault has no reason; it is not one of "good" quality, only not of a known bad one.
Explains  low_quality_text -> alerts/catalogue/low_quality_text.yaml
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, Literal

from service.text.clean import clean, drop_markup, repair_encoding

__all__ = ["REASONS", "Language", "QualityReason", "holds_image", "language", "quality_reason"]

QualityReason = Literal["empty", "replacement", "mojibake", "markup", "base64", "repetition"]
REASONS: Final[tuple[QualityReason, ...]] = ("empty", "replacement", "mojibake", "markup", "base64", "repetition")
"""Every reason, the one that explains most first: a text gets the first that holds."""

Language = Literal["zh", "en", "mixed"]

# U+FFFD itself, and the trio that it becomes when its UTF-8 is read as GBK: that one passes the contract.
_REPLACED: Final = ("\ufffd", "锟斤拷")
_WORDS: Final = re.compile(r"[A-Za-z0-9〇㐀-䶿一-鿿Ａ-Ｚａ-ｚ０-９]")
# What is left of entities and tags when somebody took the marks that the contract refuses out of them.
_LEFT_OF_MARKUP: Final = re.compile(r"\b(?:nbsp|quot|amp|apos);|\b(?:br|div|span|p) (?:br|div|span|class|style)\b")
# From its first character alone, or each letter of each word would be a start.
_ENCODED: Final = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{64,}")
_IMAGE_HEADS: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
# Chinese in UTF-8 begins each character with 0xE4..0xE9; read as GBK, that byte and the one behind it are one of these.
_LEADS_READ_AS_GBK: Final = re.compile(
    "["
    + "".join(bytes([lead, trail]).decode("gbk", "ignore") for lead in range(0xE4, 0xEA) for trail in range(0x80, 0xC0))
    + "]"
)
_LATIN: Final = re.compile("[\u00c2-\u00f4]")
_LEAST_BROKEN: Final = 4
_VALID_SHARE: Final = 0.8
_LEAST_ENCODED: Final = 64
# Shorter ones repeat as people do ("haha", three exclamation marks).
_LEAST_REPEATED: Final = 30
# Of 6,000 real reviews one with 30 characters or more has fewer distinct characters than this share.
_DISTINCT_SHARE: Final = 0.12
# A long English text has no more than some 50 distinct characters, however little it repeats.
_MOST_DISTINCT: Final = 12


def quality_reason(text: str, cleaned: str | None = None) -> QualityReason | None:
    """Return why the text is of low quality, None when no rule finds a fault.

    Args:
        text: As received.
        cleaned: The same after `clean`; worked out unless given.
    """
    cleaned = clean(text) if cleaned is None else cleaned
    if not text.isascii():
        if any(one in text for one in _REPLACED):
            return "replacement"
        if _misread(text):
            return "mojibake"
    if _WORDS.search(cleaned) is None:
        return "empty"
    if _is_markup(text):
        return "markup"
    if len(text) >= _LEAST_ENCODED and _ENCODED.search(text) is not None and _is_encoded(text):
        return "base64"
    # A beginning with more distinct characters than the whole may have settles it for nearly all.
    if (
        len(text) >= _LEAST_REPEATED
        and len(set(cleaned[:_LEAST_REPEATED])) <= _MOST_DISTINCT
        and len(set(cleaned)) <= min(_MOST_DISTINCT, len(cleaned) * _DISTINCT_SHARE)
    ):
        return "repetition"
    return None


def _is_markup(text: str) -> bool:
    """Return whether tags or entities are in the text, whole or without their marks."""
    if ("<" in text or "&" in text) and drop_markup(text) != text:
        return True
    # Looking for one mark is far cheaper than a search for all words, and few texts hold any.
    maybe = (
        "p;" in text
        or "t;" in text
        or "s;" in text
        or " br" in text
        or " div" in text
        or " span" in text
        or " class" in text
        or " style" in text
    )
    return maybe and _LEFT_OF_MARKUP.search(text) is not None


def _misread(text: str) -> bool:
    """Return whether the text is UTF-8 that was read as Windows-1252 or as GBK.

    Chinese of four characters or more whose bytes in GBK are nearly all valid UTF-8 is none that anybody writes: every
    character's two bytes would have to fall into place. (Of two characters there are some.)
    """
    if _LEADS_READ_AS_GBK.search(text) is not None:
        raw = "".join(c for c in text if c > "\x7f").encode("gbk", "ignore")
        # some bytes are lost on the way: not all pairs are characters of GBK
        whole = raw.decode("utf-8", "ignore")
        if len(whole) >= _LEAST_BROKEN and len(whole.encode()) >= _VALID_SHARE * len(raw):
            return True
    # Letters of Latin-1 are in no text of the contract; repair_encoding also takes out U+FFFD, looked for before.
    return _LATIN.search(text) is not None and repair_encoding(text) != text


def _is_encoded(text: str) -> bool:
    run = max(_ENCODED.findall(text), key=len)
    return bool(re.search("[a-z]", run) and re.search("[A-Z]", run) and re.search("[0-9]", run))


def holds_image(text: str) -> bool:
    """Return whether a run of base64 in the text begins as a PNG, JPEG, GIF or WebP image does.

    Args:
        text: As received.
    """
    if len(text) < _LEAST_ENCODED or _ENCODED.search(text) is None:
        return False
    for run in _ENCODED.findall(text):
        try:
            head = base64.b64decode(run[:32], validate=True)
        except binascii.Error:
            continue
        if head.startswith(_IMAGE_HEADS) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
            return True
    return False


def language(text: str) -> tuple[Language, float]:
    """Return the language of the text, and the share of its characters outside ASCII, 0..1.

    "mixed" is where neither has nine tenths of the characters; an empty text is "en" with a share of 0.
    """
    if text.isascii():
        return "en", 0.0
    share = 1.0 - len(text.encode("ascii", "ignore")) / len(text)
    if share >= 0.9:
        return "zh", share
    return ("en" if share <= 0.1 else "mixed"), share
