"""Windows of one minute, by the messages' own time; sums only, so that they can be added and stored.

Decided   A window is complete once everything still to come is later than its end by the grace (10 s); until an hour
          later a message for it corrects it, and its revision rises. What is for an older one is late, what is more
          than a minute ahead of this machine's clock is from the future: both are dead letters, so that one wrong clock
          closes no window. Duplicates are told by what is remembered of each message for as long as its window can be
          corrected: the same message has the same time, and with it the same window.
Bounded   an hour of windows, and the day of complete ones that is kept: 1,500 of them, of some 600 bytes each.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from service.stream.features import LANGUAGES, Features
from service.stream.message import DEVICES
from service.text.quality import REASONS

__all__ = ["LENGTH_STEP", "MINUTE_NS", "SHIFTS", "Damaged", "Window", "minute_of", "shift_between"]

MINUTE_NS: Final = 60_000_000_000
LENGTH_STEP: Final = 32
_LENGTHS: Final = 512 // LENGTH_STEP
_TENTHS: Final = 10

# Places of the sums.
MESSAGES: Final = 0
LENGTH_SUM: Final = 1
LENGTH_SQUARES: Final = 2
PERSONAL: Final = 3
WIDE: Final = 4
_DEVICES_AT: Final = 5
_LANGUAGES_AT: Final = _DEVICES_AT + len(DEVICES)
_QUALITY_AT: Final = _LANGUAGES_AT + len(LANGUAGES)
_LENGTHS_AT: Final = _QUALITY_AT + len(REASONS)
_NON_ASCII_AT: Final = _LENGTHS_AT + _LENGTHS
_SIZE: Final = _NON_ASCII_AT + _TENTHS + 1

_DEVICE_PLACE: Final = {name: _DEVICES_AT + number for number, name in enumerate(DEVICES)}
_LANGUAGE_PLACE: Final = {name: _LANGUAGES_AT + number for number, name in enumerate(LANGUAGES)}
_QUALITY_PLACE: Final = {name: _QUALITY_AT + number for number, name in enumerate(REASONS)}

_FORMAT: Final = 1
_PACKED: Final = struct.Struct(f"<HHIQ{_SIZE}Q")

# Features whose distribution is compared with that of the windows before: their places among the sums.
SHIFTS: Final = {
    "length": slice(_LENGTHS_AT, _NON_ASCII_AT),
    "non_ascii": slice(_NON_ASCII_AT, _SIZE),
    "language": slice(_LANGUAGES_AT, _QUALITY_AT),
    "device": slice(_DEVICES_AT, _LANGUAGES_AT),
}


class Damaged(ValueError):  # noqa: N818 - says what is wrong
    """Bytes that are no window."""


def minute_of(event_ns: int) -> int:
    """Return the window of a time: whole minutes since 1970."""
    return event_ns // MINUTE_NS


@dataclass(slots=True)
class Window:
    """The sums of one minute.

    Attributes:
        minute: Minutes since 1970.
        sums: By the places above.
        revision: 0 while it is open, then how often it was completed or corrected.
        completed_ns: When it was first complete, ns since 1970; 0 while it is open.
    """

    minute: int
    sums: list[int] = field(default_factory=lambda: [0] * _SIZE)
    revision: int = 0
    completed_ns: int = 0

    def add(self, features: Features, device: str) -> None:
        """Count one message."""
        sums, length = self.sums, features.length
        sums[MESSAGES] += 1
        sums[LENGTH_SUM] += length
        sums[LENGTH_SQUARES] += length * length
        if features.personal:
            sums[PERSONAL] += 1
        if features.wide:
            sums[WIDE] += 1
        sums[_DEVICE_PLACE[device]] += 1
        sums[_LANGUAGE_PLACE[features.language]] += 1
        if features.quality is not None:
            sums[_QUALITY_PLACE[features.quality]] += 1
        sums[_LENGTHS_AT + min((length - 1) // LENGTH_STEP, _LENGTHS - 1)] += 1
        sums[_NON_ASCII_AT + int(features.non_ascii * _TENTHS)] += 1

    def plus(self, other: Window) -> Window:
        """Return this window with the sums of another."""
        sums = [mine + theirs for mine, theirs in zip(self.sums, other.sums, strict=True)]
        return Window(self.minute, sums, self.revision, self.completed_ns)

    @property
    def end_ns(self) -> int:
        """Return the end of its minute, ns since 1970."""
        return (self.minute + 1) * MINUTE_NS

    @property
    def messages(self) -> int:
        """Return how many messages it counts."""
        return self.sums[MESSAGES]

    @property
    def mean_length(self) -> float | None:
        """Return the average length of its questions, in characters; None without any."""
        return self.sums[LENGTH_SUM] / self.messages if self.messages else None

    def share(self, place: int) -> float | None:
        """Return the share of its messages that is counted at *place*; None without any."""
        return self.sums[place] / self.messages if self.messages else None

    @property
    def low_quality(self) -> int:
        """Return how many of its messages are of low quality."""
        return sum(self.sums[_QUALITY_AT:_LENGTHS_AT])

    def pack(self) -> bytes:
        """Return the bytes that `unpack` reads."""
        return _PACKED.pack(_FORMAT, 0, self.revision, self.completed_ns, *self.sums)

    @classmethod
    def unpack(cls, minute: int, raw: bytes) -> Window:
        """Return the window of *minute* from its bytes.

        Raises:
            Damaged: If they are none of this format.
        """
        if len(raw) != _PACKED.size:
            raise Damaged(f"a window of {len(raw)} bytes")
        known, _spare, revision, completed_ns, *sums = _PACKED.unpack(raw)
        if known != _FORMAT:
            raise Damaged(f"a window of format {known}")
        return cls(minute, sums, revision, completed_ns)

    def to_json(self) -> dict[str, object]:
        """Return it as plain values, for people and for the topic of windows."""
        sums = self.sums
        return {
            "start_unix_s": self.minute * 60,
            "revision": self.revision,
            "messages": self.messages,
            "mean_length_characters": None if self.mean_length is None else round(self.mean_length, 3),
            "low_quality": dict(zip(REASONS, sums[_QUALITY_AT:_LENGTHS_AT], strict=True)),
            "personal": sums[PERSONAL],
            "wide": sums[WIDE],
            "device_type": dict(zip(DEVICES, sums[SHIFTS["device"]], strict=True)),
            "language": dict(zip(LANGUAGES, sums[SHIFTS["language"]], strict=True)),
            "length_counts": sums[SHIFTS["length"]],
            "non_ascii_counts": sums[SHIFTS["non_ascii"]],
            "completed_unix_s": self.completed_ns / 1e9 if self.completed_ns else None,
        }


def shift_between(one: Sequence[int], other: Sequence[int], *, ordered: bool) -> float | None:
    """Return how far two counted distributions are apart, 0..1; None where one of them is empty.

    Args:
        one: Counts.
        other: Counts of the same classes.
        ordered: Whether the classes have an order: then the largest distance of the distribution functions
            (Kolmogorov-Smirnov), else half the sum of the differences (total variation).
    """
    total, whole = sum(one), sum(other)
    if not total or not whole:
        return None
    differences = [mine / total - theirs / whole for mine, theirs in zip(one, other, strict=True)]
    if not ordered:
        return sum(map(abs, differences)) / 2
    largest = reached = 0.0
    for difference in differences:
        reached += difference
        largest = max(largest, abs(reached))
    return min(1.0, largest)
