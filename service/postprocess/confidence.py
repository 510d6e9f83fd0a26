"""What the model's raw logits mean: one pure function, the same in process and behind the socket (row B8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

__all__ = ["WHERE", "InProcess", "Postprocess", "Verdict", "Where", "softmax", "verdict"]

Where = Literal["process", "socket", "fallback"]
WHERE: Final[tuple[Where, ...]] = ("process", "socket", "fallback")
"""fallback: the socket was asked, or would have been, and this process had to do it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the logits say.

    Attributes:
        label: The likeliest class.
        confidence: Its calibrated probability, 0..1.
    """

    label: str
    confidence: float


def softmax(logits: Sequence[float], temperature: float) -> list[float]:
    """Return the probabilities of logits divided by the temperature; finite logits of any size are fine."""
    # Plain floats: three numbers are done before numpy has checked its arguments.
    top = max(logits)
    weights = [math.exp((value - top) / temperature) for value in logits]
    total = sum(weights)
    return [weight / total for weight in weights]


def verdict(logits: Sequence[float], temperature: float, labels: Sequence[str]) -> Verdict:
    """Return the likeliest label and its confidence.

    Args:
        logits: One finite number per label.
        temperature: Divides them; above 0.
        labels: In the order of the logits.
    """
    probabilities = softmax(logits, temperature)
    confidence = max(probabilities)
    return Verdict(labels[probabilities.index(confidence)], confidence)


class Postprocess(Protocol):
    """Makes a verdict of logits, somewhere."""

    async def judge(self, logits: Sequence[float], temperature: float, labels: Sequence[str]) -> tuple[Verdict, Where]:
        """Return what the logits say, and where that was found out."""

    async def close(self) -> None:
        """Give back what it holds."""


class InProcess:
    """Postprocessing in this process."""

    async def judge(self, logits: Sequence[float], temperature: float, labels: Sequence[str]) -> tuple[Verdict, Where]:
        """Return what the logits say, and where that was found out."""
        return verdict(logits, temperature, labels), "process"

    async def close(self) -> None:
        """Do nothing; the other one has connections."""
