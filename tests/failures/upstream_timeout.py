"""A client release gives its requests 100 ms, half of what they take; slow but patient callers are the healthy twin."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

SLUG = "upstream_timeout"
# failures.md: callers give up at 100 ms
TIMEOUT_SECONDS = 0.1
PATIENT_SECONDS = 10.0
# What these callers ask for has always taken so long: the service is not slower than before.
TAKES_SECONDS = 0.2
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
    with repeating(lambda: ask(stack.service_url, TIMEOUT_SECONDS)):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send the same requests and wait for their answers.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda: ask(stack.service_url, PATIENT_SECONDS)):
        yield


def ask(url: str, timeout_seconds: float) -> int:
    """Send one request on a connection of its own; return its status, or raise TimeoutError and hang up."""
    parts = urlsplit(url)
    body = json.dumps({"text": "Very good room, and the staff is friendly.", "product_id": "HT20240117"})
    headers = {"content-type": "application/json", "x-client-release": RELEASE, "x-device-type": "app"}
    headers["user-agent"] = "ReviewApp/5.1 (Android 14)"
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=timeout_seconds)
    try:
        connection.request("POST", "/v1/sentiment", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def repeating(action: Callable[[], Any]) -> Iterator[None]:
    """Run an action again and again in a thread until left; what it raises is not ours to end the drill with."""
    over = threading.Event()

    def run() -> None:
        for _ in count():
            with suppress(OSError, http.client.HTTPException):
                action()
            if over.wait(PERIOD_SECONDS):
                return

    thread = threading.Thread(target=run, name="clients", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=15)
