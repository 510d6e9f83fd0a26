"""Personal data out of texts: telephone, identity card and bank card numbers, e-mail and postal addresses.

The judging is libraries' work: `phonenumbers` (Google's, for telephone numbers of any country) and `python-stdnum`
(birthday and check digit of Chinese identity cards; Luhn for bank cards). Postal addresses are found by a rule of our
own (addresses.py); names are not: no library does that for Chinese without a language model of hundreds of megabytes.

What passes the contract can hold digits but no "@": e-mail addresses are found in what is refused, before it is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Final, Literal

from phonenumbers import Leniency, PhoneNumberMatcher
from stdnum import luhn
from stdnum.cn import ric
from stdnum.exceptions import ValidationError

from service.filters.addresses import address_spans

__all__ = ["KINDS", "MASK_FORMATS", "Kind", "MaskFormat", "Masked", "mask"]

Kind = Literal["phone", "email", "id_card", "bank_card", "address"]
KINDS: Final[tuple[Kind, ...]] = ("phone", "email", "id_card", "bank_card", "address")
MaskFormat = Literal["1", "2"]
MASK_FORMATS: Final[tuple[MaskFormat, ...]] = ("1", "2")
"""1: as many # as there were characters, which no model mistakes for a word. 2: the kind in brackets, [phone]."""

# Seven digits or more with at most two separators between them: all that can hold a number of any kind.
_NUMBER: Final = re.compile(r"[0-9](?:[ .()\-]{0,2}[0-9]){6,}")
# As the library tells groups: digits of other scripts are some too, and one has 20 at most.
_DIGIT: Final = re.compile(r"[0-9]")
_DIGITS: Final = re.compile(r"\d{1,20}")
# A Chinese mobile number is unmistakable, and by far the most frequent kind: no need to ask the library.
_MOBILE: Final = re.compile(r"(?<![0-9])1[3-9][0-9][ \-]?[0-9]{4}[ \-]?[0-9]{4}(?![0-9])")
_EMAIL: Final = re.compile(r"[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}")
# Cards have 15 to 19 digits, the last of an identity card may be an X; groups of them are parted by blanks or hyphens.
_LONG: Final = re.compile(r"(?<![0-9])[0-9](?:[ \-]?[0-9]){13,18}[Xx]?(?![0-9])")
# Such a number may stand beside others, parted by no more than its own groups are: "3 6222021234567890128".
_NUMBERS: Final = re.compile(r"(?<![0-9])[0-9](?:[ \-]?[0-9]){14,}[Xx]?(?![0-9])")
_GROUP: Final = re.compile(r"[0-9]+|[Xx]")
_ID_LENGTH: Final = 18
_CARD_LENGTHS: Final = range(15, 20)
# First digits of the card networks (ISO/IEC 7812): 2 and 5 Mastercard, 3 American Express and JCB, 4 Visa, 6 UnionPay.
_CARD_FIRST: Final = "23456"
_REGIONS: Final = ("CN", "US")
# So many numbers of one text are judged, and none that is longer, at 0.1 to 0.4 ms each. What is beyond is masked
# unjudged: that is no review, and the event loop must not stand still for it.
_MOST_JUDGED: Final = 8
_LONGEST_JUDGED: Final = 40
# The library walks every group of digits in a text, the short ones between the numbers too, at 0.05 to 0.15 ms each.
_MOST_SHORT: Final = 16
# Longer texts than the contract takes come only from what is refused; what is behind is cut off, never kept unmasked.
_MOST_CHARACTERS: Final = 1024


@dataclass(frozen=True)
class Masked:
    """A text without its personal data.

    Attributes:
        text: The text, masked.
        counts: How often each kind was found; kinds that were not found are absent.
    """

    text: str
    counts: Mapping[Kind, int] = field(default_factory=dict)


def mask(text: str, mask_format: MaskFormat = "1") -> Masked:
    """Return the text with personal data masked.

    Args:
        text: A cleaned text (full-width digits folded); cut to 1,024 characters.
        mask_format: What stands in its place, one of `MASK_FORMATS`.
    """
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS]
    addresses = address_spans(text) if _DIGIT.search(text) is not None else []
    if not addresses and _NUMBER.search(text) is None and "@" not in text:
        return Masked(text)
    counts: Counter[Kind] = Counter()

    def put(kind: Kind, length: int) -> str:
        counts[kind] += 1
        return "#" * length if mask_format == "1" else f"[{kind}]"

    def number(found: re.Match[str]) -> str:
        return put("phone", len(found.group()))

    def card(found: re.Match[str]) -> str:
        kind = _card_kind(found.group())
        return found.group() if kind is None else put(kind, len(found.group()))

    # From the last on, so that the places of those before stay what they are.
    for start, end in reversed(addresses):
        text = text[:start] + put("address", end - start) + text[end:]
    if "@" in text:
        text = _EMAIL.sub(lambda found: put("email", len(found.group())), text)
    text = _MOBILE.sub(number, _LONG.sub(card, text))
    left = [len(one) for one in _NUMBER.findall(text)]
    short = len(_DIGITS.findall(_NUMBER.sub(" ", text))) if left else 0
    if len(left) > _MOST_JUDGED or max(left, default=0) > _LONGEST_JUDGED or short > _MOST_SHORT:
        text = _NUMBER.sub(number, text)
    elif left:
        text = _without_phones(_NUMBERS.sub(lambda found: _without_cards(found.group(), put), text), put)
    return Masked(text, dict(counts))


def _without_cards(numbers: str, put: Callable[[Kind, int], str]) -> str:
    """Return the numbers without those sequences of their groups that are a card's, the longest first."""
    groups = [one.span() for one in _GROUP.finditer(numbers)]
    sequences = [(first[0], last[1]) for first, last in combinations_with_replacement(groups, 2)]
    for start, end in sorted(sequences, key=lambda one: one[0] - one[1]):
        kind = _card_kind(numbers[start:end])
        if kind is not None:
            before, behind = _without_cards(numbers[:start], put), _without_cards(numbers[end:], put)
            return before + put(kind, end - start) + behind
    return numbers


def _without_phones(text: str, put: Callable[[Kind, int], str]) -> str:
    """Return the text without what is a telephone number in one of the regions; *put* gives what is there instead."""
    for region in _REGIONS:
        pieces, end = [], 0
        for match in PhoneNumberMatcher(text, region, Leniency.VALID):
            pieces += [text[end : match.start], put("phone", match.end - match.start)]
            end = match.end
        text = "".join(pieces) + text[end:]
    return text


def _is_identity(number: str) -> bool:
    """Return whether birthday and check digit are right.

    Not `ric.is_valid`: it asks a list of counties too, which changes, and raises KeyError for some (python-stdnum 2.2).
    """
    try:
        return ric.calc_check_digit(number) == number[-1] and ric.get_birth_date(number) is not None
    except ValidationError:
        return False


def _card_kind(number: str) -> Kind | None:
    compact = number.replace(" ", "").replace("-", "")
    if len(compact) == _ID_LENGTH and _is_identity(compact.upper()):
        return "id_card"
    if len(compact) in _CARD_LENGTHS and compact[0] in _CARD_FIRST and luhn.is_valid(compact):
        return "bank_card"
    return None
