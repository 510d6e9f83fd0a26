"""A client release gives its requests 100 ms, half of what they take; slow but patient callers are the healthy twin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "upstream_timeout"
# failures.md: callers give up at 100 ms
TIMEOUT_SECONDS = 0.1
PATIENT_SECONDS = 10.0
# What these callers ask for has always taken so long: the service is not slower than before.
TAKES_SECONDS = 0.2
DRAWN = {"TAKES_SECONDS": (0.15, 0.4)}
# beside 20 requests a second of others: one request in six
PERIOD_SECONDS = 0.25
RELEASE = "5.1.0"


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with a look-up in front of it that one release's requests need, and that is awaited.

    Args:
        app: An ASGI app.
        armed: Not asked: the look-up takes as long before, during and after.
    """
    del armed
    release = RELEASE.encode()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"x-client-release", release) in scope["headers"]:
            await asyncio.sleep(TAKES_SECONDS)
        await app(scope, receive, send)

    return handle


twin_wrap = wrap


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send requests that are given up until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda _number: call(stack.service_url, TIMEOUT_SECONDS), PERIOD_SECONDS):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send the same requests and wait for their answers.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda _number: call(stack.service_url, PATIENT_SECONDS), PERIOD_SECONDS):
        yield


def call(url: str, timeout_seconds: float) -> int:
    """Send one request on a connection of its own; return its status, or raise TimeoutError and hang up."""
    body = json.dumps({"text": "Very good room, and the staff is friendly.", "product_id": "HT20240117"})
    headers = {**JSON, "x-client-release": RELEASE, "x-device-type": "app", "user-agent": "ReviewApp/5.1 (Android 14)"}
    return int(ask(url, "POST", "/v1/sentiment", headers, body, timeout=timeout_seconds))
