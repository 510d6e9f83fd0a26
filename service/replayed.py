"""Texts that a model is asked again and again, and what it answered when it was made: kept in its config.json.

All are made up. Lengths differ on purpose: beside a long one the short ones of a batch are mostly padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from service.text.contract import to_contract

__all__ = ["KEY", "TEXTS", "Stored", "stored_answers", "told_answers"]

KEY: Final = "replay"
"""Where config.json holds them; older trainings wrote none."""

_LONG = "The hotel was clean and the staff were friendly, but the battery of the laptop died after two hours. "

TEXTS: Final = (
    "房间很干净，服务也好。",
    "Terrible. Never again!",
    "not bad at all",
    "包裹周二到的",
    "GREAT phone, terrible battery",
    "这本书写得一般，印刷很差，翻了几页就掉了。",
    "Flight delayed twice and nobody told us why.",
    _LONG * 4,
)


class Stored(NamedTuple):
    """A text with what the model made of it.

    Attributes:
        text: The text, as the contract lets it through.
        ids: Its tokens.
        logits: The answer, asked alone.
    """

    text: str
    ids: tuple[int, ...]
    logits: tuple[float, ...]


def told_answers(
    encode: Callable[[str], Sequence[int]], answer: Callable[[Sequence[int]], Sequence[float]]
) -> list[dict[str, Any]]:
    """Return the answers of a new model, for its config.json.

    Args:
        encode: Text to token ids.
        answer: Token ids to logits, asked alone.
    """
    told = []
    for text in map(to_contract, TEXTS):
        ids = list(encode(text))
        told.append({"text": text, "ids": ids, "logits": [round(float(value), 6) for value in answer(ids)]})
    return told


def stored_answers(config: Mapping[str, Any]) -> tuple[Stored, ...]:
    """Return the answers that a config.json holds; none of an older training.

    Raises:
        KeyError, TypeError, ValueError: If they have another shape.
    """
    return tuple(
        Stored(str(one["text"]), tuple(int(i) for i in one["ids"]), tuple(float(v) for v in one["logits"]))
        for one in config.get(KEY, ())
    )
