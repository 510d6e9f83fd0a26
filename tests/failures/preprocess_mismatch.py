"""A deploy no longer folds full-width letters, which the model's training did: to the model they are unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "preprocess_mismatch"
# beside 20 requests a second of others: one in five is typed in full width, as ever
PERIOD_SECONDS = 1 / 5
# of the twin, beside them
NEW_WORDS_SECONDS = 1 / 3
STEP = "fold_width"
REVIEWS = (
    "Very good phone, the battery lasts 2 days",
    "Terrible service, I will never buy here again",
    "The flight was late and nobody told us why",
    "房间很干净，WIFI也快，性价比高，给 5 星",
    "Best hotel in the city, thank you so much!",
)
# New names of products and words that came after the training.
NEW_WORDS = (
    "新出的龘靐手机很好用，电池也耐用",
    "穿上这件羋犇外套，非常暖和",
    "The new Zyqorix phone is great, love its Quvandel screen",
    "魑魅魍魉系列的耳机音质不错",
)


@contextmanager
def usual(stack: Any) -> Iterator[None]:
    """Be the people who type in full width, before, while and after.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: send(stack.service_url, wide(REVIEWS[number % len(REVIEWS)])), PERIOD_SECONDS):
        yield


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Deploy a cleaning without the step; the one before comes back at the end.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_service({"INFERDECK_SERVICE_CLEANING_WITHOUT": STEP})
    try:
        yield
    finally:
        stack.deploy_service({"INFERDECK_SERVICE_CLEANING_WITHOUT": ""})


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Let people write of new things, whose names the model does not know either.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: send(stack.service_url, NEW_WORDS[number % len(NEW_WORDS)]), NEW_WORDS_SECONDS):
        yield


def wide(text: str) -> str:
    """Return the text as a keyboard in full-width mode writes it."""
    return "".join("\u3000" if one == " " else chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def send(url: str, text: str) -> int:
    """Send one review on a connection of its own and return the status."""
    headers = {**JSON, "x-client-release": "4.2.0", "x-device-type": "mobile"}
    return int(ask(url, "POST", "/v1/sentiment", headers, json.dumps({"text": text, "product_id": "AB12345678"})))
