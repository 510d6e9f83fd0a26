"""The service is rolled out with one connection to Triton for all its threads, and 100 clients ask at one time."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "client_pool_wait"
BACKEND = "triton"
# Each request is a call of its own: Triton is left to put them into batches, for which they must reach it together.
SETTINGS = {"scheduler_batching": "false"}
CLIENTS = 100
PERIOD_SECONDS = 1.5
# As many threads as there are by default with Triton, where each has a connection of its own.
THREADS = 32
# So long Triton's model stands still, again and again, and so long it goes on between.
STILL_SECONDS, GOING_SECONDS = 0.05, 0.02
TEXTS = ("房间很干净", "物流很快，包装完好", "一般般吧", "质量不错", "Great phone", "not worth it", "客服态度很差")


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll out one connection for all threads, and let many ask at one time until left.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_service(connections(1))
    with asking(stack.service_url):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Roll out a connection for each thread; as many ask, and Triton itself is busy.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_service(connections(THREADS))
    with asking(stack.service_url), repeating(lambda _number: hold_up(stack), GOING_SECONDS):
        yield


def connections(number: int) -> dict[str, str]:
    """Return the variables of a service with so many connections to Triton."""
    return {
        "INFERDECK_SERVICE_TRITON_CONNECTIONS": str(number),
        "INFERDECK_SERVICE_INFERENCE_THREADS": str(THREADS),
    }


def hold_up(stack: Any) -> None:
    """Let the processes that run Triton's model stand still for a moment: as computing does, and no CPU is taken."""
    stubs = stack.triton_pids(stubs=True)
    try:
        for pid in stubs:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(STILL_SECONDS)
    finally:
        for pid in stubs:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Let all clients ask at one time, again and again, until left."""
    with ThreadPoolExecutor(CLIENTS) as clients:

        def all_at_once(number: int) -> None:
            list(clients.map(lambda client: send(url, TEXTS[(client + number) % len(TEXTS)]), range(CLIENTS)))

        with repeating(all_at_once, PERIOD_SECONDS):
            yield


def send(url: str, text: str) -> int:
    """Send one review on a connection of its own and return the status; 0 when there was no answer."""
    with suppress(OSError):
        body = json.dumps({"text": text, "product_id": "AB12345678"})
        return int(ask(url, "POST", "/v1/sentiment", JSON, body, timeout=10))
    return 0
