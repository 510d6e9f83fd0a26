"""A fixed amount of work in front of an app, as a handler may do: it holds the loop's thread and not the GIL."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

__all__ = ["BYTES_VARIABLE", "add_work", "bytes_for"]

BYTES_VARIABLE: Final = "INFERDECK_BENCH_WORK_BYTES"

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


def bytes_for(seconds: float, clock: Callable[[], float] = time.thread_time) -> int:
    """Return how many bytes take so long to be hashed on this machine, the quickest of seven tries.

    Measured once and given to all services: two that measured by themselves would do different work.

    Args:
        seconds: CPU seconds.
        clock: CPU seconds of this thread.
    """
    sample = bytes(1 << 20)
    tries = []
    for _ in range(7):
        began = clock()
        hashlib.sha256(sample)
        tries.append(clock() - began)
    return round(seconds / max(min(tries), 1e-6) * len(sample))


def add_work(app: App) -> App:
    """Wrap an app, as the service's settings name middleware; how much work stands in the environment."""
    body = bytes(int(os.environ[BYTES_VARIABLE]))

    async def working(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            hashlib.sha256(body)
        await app(scope, receive, send)

    return working
