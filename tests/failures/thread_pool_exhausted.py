"""Slow calls occupy the executor that the quick calls of all other requests need as well."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from probes import stage

SLUG = "thread_pool_exhausted"
# a pool as small as asyncio's own on a machine with two cores; requirements, failures.md: slow calls occupy it
THREADS = 6
SLOW_SECONDS = 1.5
# at 20 requests a second: 6 of 20 are slow, 9 threads would be needed
SHARE = 0.3
# a quiet morning has a quarter less traffic
DRAWN = {"SHARE": (0.4, 0.5)}


def look_up(seconds: float) -> None:
    """Ask a store without an async client; it answers after a while."""
    time.sleep(seconds)


def wrap(app: Any, armed: Callable[[], bool], rng: random.Random | None = None) -> Any:
    """Return *app* with a look-up in front of each request, made by a thread of the executor; some are slow.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
        rng: Draws which are slow.
    """
    draw = rng or random.Random()
    return _looked_up(app, armed, lambda: SLOW_SECONDS if draw.random() < SHARE else 0.0)


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with the same look-ups, of which the first six are slow: a burst that drains.

    Args:
        app: An ASGI app.
        armed: Whether the look-ups are made.
    """
    left, lock = [THREADS], threading.Lock()

    def seconds() -> float:
        with lock:
            left[0] -= 1
            return SLOW_SECONDS if left[0] >= 0 else 0.0

    return _looked_up(app, armed, seconds)


def _looked_up(app: Any, armed: Callable[[], bool], seconds: Callable[[], float]) -> Any:
    bounded: list[bool] = []

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed():
            if not bounded:
                # asyncio's default is min(32, cores + 4): the same on every machine.
                asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
                bounded.append(True)
            with stage("sentiment.preprocess"):
                await asyncio.to_thread(look_up, seconds())
        await app(scope, receive, send)

    return handle
