"""What a request is answered: a judgement, or none and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["UNHEARD", "Degraded", "Judgement", "Unheard"]

Degraded = Literal["deadline", "queue_full", "model_error", "fallback", "gpu_saturated", "triton_down", "memory"]
Unheard = Literal["deadline", "queue_full", "model_error", "gpu_saturated", "triton_down", "memory"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of a text.

    Attributes:
        sentiment: The label.
        confidence: Its calibrated probability, 0..1.
        degraded: Why the model was not heard, or that another than the wanted one was; else None.
        version: Which version answered, where the caller is told; else empty.
        afterwards: What is done once the caller has the answer, where there is something.
    """

    sentiment: str
    confidence: float
    degraded: Degraded | None = None
    version: str = ""
    afterwards: Callable[[], Awaitable[None]] | None = None


UNHEARD: Final[Mapping[Unheard, Judgement]] = {
    "deadline": Judgement("neutral", 0.0, "deadline"),
    "queue_full": Judgement("neutral", 0.0, "queue_full"),
    "model_error": Judgement("neutral", 0.0, "model_error"),
    "gpu_saturated": Judgement("neutral", 0.0, "gpu_saturated"),
    "triton_down": Judgement("neutral", 0.0, "triton_down"),
    "memory": Judgement("neutral", 0.0, "memory"),
}
