"""Postal addresses in texts, Chinese and English: a street with its number, and what belongs to it.

A rule of its own, since the libraries that know addresses (libpostal, language models) take gigabytes and find none
inside a text. It asks for a street's word and a house's number together, so that 南京路 and Broadway stay; addresses
without a number are missed, and 号线 is a metro.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["address_spans"]

_HAN: Final = "\u4e00-\u9fff"
_STREET: Final = re.compile(
    r"(?:大街|大道|胡同|[路街道巷弄村里])[0-9]{1,5}(?:[之\-][0-9]{1,3})?[号弄](?!线)(?:[0-9A-Za-z]{1,4}(?:号楼|号|[栋幢层楼室座]|单元)){0,5}"
)
# The longest name of a place before its street; what is further left is the sentence.
_LONGEST_NAME: Final = 24
# Words after which an address begins, where no other sign does.
_BEFORE: Final = re.compile(rf"[^{_HAN}]|[在到往于至址寄送是从给去]")
_ENGLISH: Final = re.compile(
    r"(?<![0-9A-Za-z])[0-9]{1,5} (?:[NSEW]\.? )?(?:[A-Z][a-z]{1,20} ){1,3}"
    r"(?:Street|St|Road|Rd|Avenue|Ave|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct)\b\.?"
    r"(?:,? (?:Apt|Suite|Unit|Room)\.? [0-9A-Za-z]{1,5}\b)?"
)


def address_spans(text: str) -> list[tuple[int, int]]:
    """Return where the addresses are, in their order and apart from each other.

    Args:
        text: At most 1,024 characters; the time is linear in them.
    """
    spans = [found.span() for found in _ENGLISH.finditer(text)]
    end = 0
    for found in _STREET.finditer(text):
        start = _start(text, max(end, found.start() - _LONGEST_NAME), found.start())
        # A street without a name is none: 前面的路3号 has one, 路3号 at the start of a clause has not.
        if start < found.start():
            spans.append((start, found.end()))
            end = found.end()
    return sorted(spans)


def _start(text: str, earliest: int, street: int) -> int:
    """Return where the name before the street begins."""
    start = earliest
    for sign in _BEFORE.finditer(text, earliest, street):
        start = sign.end()
    return start
