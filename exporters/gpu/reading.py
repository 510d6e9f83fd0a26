"""What is known of the GPUs at one moment: values, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Absent", "Card", "CardProcess", "Snapshot", "Values"]

# (metric, labels beside the card) -> value in the metric's base unit.
Values = Mapping[tuple[str, tuple[str, ...]], float]


@dataclass(frozen=True)
class Absent:
    """There is no value, which is not 0.

    Attributes:
        state: One of `names_gpu.CARD_STATES`, never "ok".
    """

    state: str


@dataclass(frozen=True)
class CardProcess:
    """One process on a card.

    Attributes:
        pid: As the driver's namespace counts; in a container not the container's own.
        name: Its program's file name; "unknown" when the driver does not tell.
        used_bytes: Memory that it holds on the card; absent where the driver cannot tell (MIG without rights, WSL).
    """

    pid: int
    name: str
    used_bytes: int | Absent


@dataclass(frozen=True)
class Card:
    """One card, or one MIG instance of it.

    Attributes:
        label: "0" for the first card, "0/1" for the second MIG instance on it.
        name: Its model; empty when it never answered.
        state: "ok", or why it has no values.
        readings: Reading (`names_gpu.READINGS`) -> values, or why there are none; empty unless the state is "ok".
        processes: Who computes on it.
    """

    label: str
    name: str
    state: str
    readings: Mapping[str, Values | Absent] = field(default_factory=dict)
    processes: tuple[CardProcess, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """All cards at one moment.

    Attributes:
        state: "ok" when NVML answered, else why not.
        driver: Version of the driver; empty when unknown.
        cards: Every card that was ever seen, the lost ones included.
    """

    state: str
    driver: str = ""
    cards: tuple[Card, ...] = ()
