"""Cleaning of review texts, the same in training and in serving (row C1).

Each step is a function of its own and may be used alone; `clean` composes them in the one order in which no later step
can create work for an earlier one. That, and replacing by a space rather than by nothing wherever two neighbours could
join into something new, is what makes `clean(clean(x)) == clean(x)` hold for every string, lone surrogates included.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence

__all__ = [
    "FINGERPRINT",
    "STEPS",
    "Step",
    "clean",
    "collapse_white_space",
    "drop_controls",
    "drop_invisible",
    "drop_markup",
    "fingerprint",
    "fold_width",
    "repair_encoding",
]

Step = Callable[[str], str]

# Format characters without a glyph. U+00AD (soft hyphen) is left to drop_controls: in broken UTF-8 it is a
# continuation byte.
_INVISIBLE = re.compile("[\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# U+FFFD read as GBK by someone on the way gives this famous trio, which is no Chinese anybody writes.
_REPLACEMENT = re.compile("\ufffd+|锟斤拷")
_WHITE_SPACE = re.compile(r"\s+")

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|[<>]")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
# Only ASCII belongs to a link or a handle here: Chinese goes on without a space behind either.
_LINK = re.compile(r"(?:https?://|www\.)[\x21-\x7e]+", re.IGNORECASE)
_HANDLE = re.compile(r"@[A-Za-z0-9_]+")

# Punctuation that is Chinese in its own right stays; letters, digits and the remaining symbols of the full-width
# block are one and the same as ASCII to a reader, and so they are to the model.
_CHINESE_PUNCTUATION = "，！？；：（）"
_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in _CHINESE_PUNCTUATION}
_WIDTH |= {0x3000: " ", 0xFF61: "。", 0xFF64: "、"}
_WIDE = re.compile("[\u3000\uff01-\uff5e\uff61\uff64]")


def _byte_table() -> dict[str, int]:
    """Return the byte that a character stands for when UTF-8 was read as Windows-1252 or as Latin-1."""
    table = {chr(code): code for code in range(0x80, 0x100)}
    for code in range(0x80, 0xA0):
        character = bytes([code]).decode("cp1252", errors="ignore")
        if character:
            table[character] = code
    return table


_BYTES = _byte_table()
# Two-byte leads other than these two are letters that people write before a dash or a quotation mark ("CAFÉ—").
_LEADS = {"\xc2": 2, "\xc3": 2} | {chr(c): 3 for c in range(0xE0, 0xF0)} | {chr(c): 4 for c in range(0xF0, 0xF5)}
_CONTINUATIONS = frozenset(character for character, code in _BYTES.items() if code < 0xC0)
_MAYBE_BROKEN = re.compile("[" + "".join(_LEADS) + "][" + re.escape("".join(sorted(_CONTINUATIONS))) + "]")


def drop_invisible(text: str) -> str:
    """Return the text without zero-width, direction and variation characters, joining what they parted."""
    return _INVISIBLE.sub("", text)


def repair_encoding(text: str) -> str:
    """Return the text with UTF-8 that was read as Windows-1252 put right, and damage beyond repair as a space.

    Args:
        text: Any string; lone surrogates are taken for damage.
    """
    if text.isascii():
        return text
    text = _SURROGATE.sub(" ", text)
    if _MAYBE_BROKEN.search(text):
        text = _reduce(text)
    return _REPLACEMENT.sub(" ", text)


def _reduce(text: str) -> str:
    """Read broken sequences back, also those that were broken twice.

    A stack, because what one repair yields may end another sequence; repeated passes would be quadratic on hostile
    input.
    """
    stack: list[str] = []
    for character in text:
        stack.append(character)
        while stack[-1] in _CONTINUATIONS:
            repaired = _sequence_at_end(stack)
            if repaired is None:
                break
            length, whole = repaired
            del stack[-length:]
            stack.append(whole)
    return "".join(stack)


def _sequence_at_end(stack: Sequence[str]) -> tuple[int, str] | None:
    """Return the length and the meaning of the UTF-8 sequence that the stack ends with, if it ends with one."""
    for length in (2, 3, 4):
        if length > len(stack):
            return None
        lead = stack[-length]
        if _LEADS.get(lead) == length:
            try:
                whole = bytes(_BYTES[c] for c in stack[-length:]).decode("utf-8")
            except UnicodeDecodeError:
                return None
            # drop_invisible has already run: what it would have dropped becomes a space here.
            return length, " " if _INVISIBLE.match(whole) else whole
        if lead not in _CONTINUATIONS:
            return None
    return None


def fold_width(text: str) -> str:
    """Return the text with full-width letters, digits and symbols as ASCII, and half-width Chinese marks made wide."""
    return text.translate(_WIDTH) if _WIDE.search(text) else text


def drop_markup(text: str) -> str:
    """Return the text with tags, entities, links and @handles replaced by a space each; handles are personal data."""
    for pattern, mark in ((_TAG, "<>"), (_ENTITY, "&"), (_LINK, "/."), (_HANDLE, "@")):
        # A look for one character is far cheaper than a search, and most texts hold none.
        if any(character in text for character in mark):
            text = pattern.sub(" ", text)
    return text


def drop_controls(text: str) -> str:
    """Return the text with control characters replaced by a space; line ends and tabs are white space, not controls."""
    return _CONTROL.sub(" ", text)


def collapse_white_space(text: str) -> str:
    """Return the text with every run of white space as one space, and none at its ends."""
    return _WHITE_SPACE.sub(" ", text).strip()


# Name and version of each step, in order. A change of behaviour is a new version: models trained before it are then
# told apart.
STEPS: tuple[tuple[str, int, Step], ...] = (
    ("drop_invisible", 1, drop_invisible),
    ("repair_encoding", 1, repair_encoding),
    ("fold_width", 1, fold_width),
    ("drop_markup", 1, drop_markup),
    ("drop_controls", 1, drop_controls),
    ("collapse_white_space", 1, collapse_white_space),
)


def clean(text: str) -> str:
    """Return the text as the model should read it: all steps, in their order.

    Args:
        text: Any string at all; this never raises, and a cleaned text stays as it is when cleaned again.
    """
    for _name, _version, step in STEPS:
        text = step(text)
    return text


# One small text per thing that a step does; their cleaned forms are part of the fingerprint, so that a changed step
# shows even when its author forgot the version. Reformatting the source does not.
_SPECIMENS = (
    "质\u200b量\u202e不错",
    "cafÃ© â€œfineâ€\x9d",
    "ÃƒÂ© ï»¿x",
    "\ud800坏\udfff",
    "坏\ufffd\ufffd字锟斤拷",
    "ＡＢｃ１２＃　，。！｡､",
    "a<br/>b <a href='x'>c</a> 1<2",
    "x&nbsp;&#39;&amp;y",
    "看http://t.cn/a1很好 www.x.com",
    "@some_one 谢谢",
    "a\x00b\x1fc\x85d\x9fe\xadf",
    "  a \t\r\n b\u2003c  ",
)


def fingerprint(steps: Sequence[tuple[str, int, Step]]) -> str:
    """Return 16 hexadecimal digits that change when the steps, their versions, their order or what they do changes.

    Args:
        steps: Name, version and function of each step, in the order of use.
    """
    outcomes: list[str] = []
    for text in _SPECIMENS:
        for _name, _version, step in steps:
            text = step(text)  # noqa: PLW2901 - each step reads what the one before it left
        outcomes.append(text)
    described = json.dumps([[(name, version) for name, version, _step in steps], outcomes])
    return hashlib.sha256(described.encode()).hexdigest()[:16]


FINGERPRINT = fingerprint(STEPS)
"""The fingerprint of this module's cleaning; a model's config.json holds the one it was trained with."""
