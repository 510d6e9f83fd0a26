"""A client puts one text of some 500 tokens among the short ones of each batch; all are padded to its length."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it
from _reviews import review  # type: ignore[import-not-found]  # as above

SLUG = "tokenizer_padding"
# A model for which the width of a batch counts, and batches at all; long enough a wait for eight on a busy machine.
SETTINGS = {"model": "transformer", "scheduler_batching": "true", "batch_size": "8", "batch_wait_seconds": "0.03"}
BATCH = 8
PERIOD_SECONDS = 0.5
# Just short of what waits in a queue of its own (500 characters): each of these characters is a token.
LONG_CHARACTERS = 490
SHORT = ("房间很干净", "物流很快，包装完好", "一般般吧", "质量不错", "Great phone", "not worth it", "客服态度很差")
Texts = Callable[[random.Random], list[str]]


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send such batches until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, mixed):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send batches that are long through and through: as much work, and nobody is padded.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, uniform):
        yield


def mixed(rng: random.Random) -> list[str]:
    """Return the texts of a batch, one of them long."""
    return [long_text(rng), *rng.sample(SHORT, BATCH - 1)]


def uniform(rng: random.Random) -> list[str]:
    """Return the texts of a batch, all of them long; half as many, or a busy machine would be short of CPU."""
    return [long_text(rng) for _ in range(BATCH // 2)]


def long_text(rng: random.Random) -> str:
    """Return a review that is just short of a queue of its own."""
    return str(review(rng, LONG_CHARACTERS))


@contextmanager
def sending(url: str, texts: Texts) -> Iterator[None]:
    """Send the texts of a batch at one time, again and again, until left."""
    rng = random.Random(5)
    with ThreadPoolExecutor(BATCH) as clients:

        def send_batch(_number: int) -> None:
            list(clients.map(lambda text: send(url, text), texts(rng)))

        with repeating(send_batch, PERIOD_SECONDS):
            yield


def send(url: str, text: str) -> int:
    """Send one review on a connection of its own and return the status."""
    return int(
        ask(url, "POST", "/v1/sentiment", JSON, json.dumps({"text": text, "product_id": "AB12345678"}), timeout=10)
    )
