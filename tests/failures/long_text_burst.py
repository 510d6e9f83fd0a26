"""A client sends bursts of long texts to a service that has no queue of their own for them; short ones wait behind."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it
from _reviews import review  # type: ignore[import-not-found]  # as above

SLUG = "long_text_burst"
# A model that takes long for long texts; each in a call of its own, so that nobody is padded.
SETTINGS = {"model": "transformer", "scheduler_batching": "false"}
OWN_QUEUE = "INFERDECK_SERVICE_LONG_TEXT_CHARACTERS"
BURST = 16
PERIOD_SECONDS = 1.0
CHARACTERS = 1000


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll the service out without a queue for long texts, and send bursts of them until left.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_service({OWN_QUEUE: "0"})
    with sending(stack.service_url):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Roll it out with that queue, and send the same texts.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_service({OWN_QUEUE: "500"})
    with sending(stack.service_url):
        yield


@contextmanager
def sending(url: str) -> Iterator[None]:
    """Send a burst of long texts, again and again, until left."""
    rng = random.Random(7)
    with ThreadPoolExecutor(BURST) as clients:

        def burst(_number: int) -> None:
            list(clients.map(lambda text: send(url, text), texts(rng)))

        with repeating(burst, PERIOD_SECONDS):
            yield


def texts(rng: random.Random) -> list[str]:
    """Return the texts of a burst."""
    return [review(rng, CHARACTERS) for _ in range(BURST)]


def send(url: str, text: str) -> int:
    """Send one review on a connection of its own and return the status; 0 when there was no answer."""
    with suppress(OSError):
        body = json.dumps({"text": text, "product_id": "AB12345678"})
        return int(ask(url, "POST", "/v1/sentiment", JSON, body, timeout=10))
    return 0
