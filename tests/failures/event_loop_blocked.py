"""A synchronous call of 200 ms inside async code, for 5% of the requests."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

SLUG = "event_loop_blocked"
# requirements, failures.md: 200 ms, 5% of requests
PAUSE_SECONDS = 0.2
SHARE = 0.05
DRAWN = {"PAUSE_SECONDS": (0.2, 0.4), "SHARE": (0.05, 0.1)}


def wrap(app: Any, armed: Callable[[], bool], rng: random.Random | None = None) -> Any:
    """Return *app* with the mistake in front of it: `time.sleep` holds up the whole event loop.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
        rng: Draws which requests are hit.
    """
    draw = rng or random.Random()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed() and draw.random() < SHARE:
            fetch_profile()
        await app(scope, receive, send)

    return handle


def fetch_profile() -> None:
    """Stand for a blocking client library that somebody calls from async code."""
    time.sleep(PAUSE_SECONDS)


def twin_wrap(app: Any, armed: Callable[[], bool], rng: random.Random | None = None) -> Any:
    """Return *app* with the same wait done right: it is awaited, so other requests go on meanwhile.

    Args:
        app: An ASGI app.
        armed: Whether the wait is on.
        rng: Draws which requests wait.
    """
    draw = rng or random.Random()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed() and draw.random() < SHARE:
            await asyncio.sleep(PAUSE_SECONDS)
        await app(scope, receive, send)

    return handle
