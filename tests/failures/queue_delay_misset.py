"""A running Triton gets a queue delay of 100 ms: a request with nobody to share a batch with waits it out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "queue_delay_misset"
BACKEND = "triton"
DELAY_MICROSECONDS = 100_000
CLIENTS = 32
MODEL = "sentiment"
TEXTS = ("房间很干净", "物流很快，包装完好", "一般般吧", "质量不错", "Great phone", "not worth it", "客服态度很差")


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Let Triton load its model with the long delay, and with the old one at the end.

    Args:
        stack: The drill's handle on the stack.
    """
    with delayed(stack.state_dir, stack.triton_url):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Load it with the same delay, where so many ask that batches are full long before it is over.

    Args:
        stack: The drill's handle on the stack.
    """
    with asking(stack.service_url), delayed(stack.state_dir, stack.triton_url):
        yield


@contextmanager
def delayed(state_dir: Path, url: str) -> Iterator[None]:
    """Deploy another configuration to the Triton that serves a stack's repository, and the old one when left."""
    path = state_dir / "triton" / "repository" / MODEL / "config.pbtxt"
    before = path.read_text(encoding="utf-8")
    deploy(path, with_delay(before, DELAY_MICROSECONDS), url)
    try:
        yield
    finally:
        deploy(path, before, url)


def with_delay(config: str, microseconds: int) -> str:
    """Return a configuration with another queue delay."""
    changed, count = re.subn(r"(max_queue_delay_microseconds:\s*)\d+", rf"\g<1>{microseconds}", config)
    if count != 1:
        raise ValueError(f"the configuration has {count} queue delays, not one")
    return changed


def deploy(path: Path, config: str, url: str) -> None:
    """Write a configuration and let Triton load it; the version that serves goes on until the new one is ready.

    Raises:
        RuntimeError: If Triton does not take it.
    """
    path.write_text(config, encoding="utf-8")
    status = ask(url, "POST", f"/v2/repository/models/{MODEL}/load", JSON, json.dumps({}), timeout=30)
    if status != 200:
        raise RuntimeError(f"Triton answered {status} to the load")


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Let all clients ask, each again as soon as it was answered, until left."""
    with ThreadPoolExecutor(CLIENTS) as clients:

        def for_a_while(number: int) -> None:
            until = time.monotonic() + 1.0

            def one(client: int) -> None:
                while time.monotonic() < until:
                    send(url, TEXTS[(client + number) % len(TEXTS)])

            list(clients.map(one, range(CLIENTS)))

        with repeating(for_a_while, 0.0):
            yield


def send(url: str, text: str) -> int:
    """Send one review on a connection of its own and return the status; 0 when there was no answer."""
    with suppress(OSError):
        body = json.dumps({"text": text, "product_id": "AB12345678"})
        return int(ask(url, "POST", "/v1/sentiment", JSON, body, timeout=10))
    return 0
