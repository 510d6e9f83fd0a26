"""Two locks that threads of the executor take in opposite order, by the kind of their request."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from probes import stage

SLUG = "worker_deadlock"
# the time for which the first lock is held before the second is asked for: a small write
HOLD_SECONDS = 0.03


class Ledger:
    """Two books with a lock each; both are needed for an entry."""

    def __init__(self) -> None:
        self.prices = threading.Lock()
        self.stock = threading.Lock()

    def sell(self) -> None:
        """Look up the price, then take from the stock."""
        with self.prices:
            time.sleep(HOLD_SECONDS)
            with self.stock:
                return

    def restock(self) -> None:
        """Put into the stock, then set the price: the opposite order."""
        with self.stock:
            time.sleep(HOLD_SECONDS)
            with self.prices:
                return


def wrap(app: Any, armed: Callable[[], bool], rng: random.Random | None = None) -> Any:
    """Return *app* with an entry into the ledger before each request, made by a thread of the loop's executor.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
        rng: Draws which of the two a request does.
    """
    ledger, draw = Ledger(), rng or random.Random()
    return _booked(app, armed, lambda: ledger.sell if draw.random() < 0.5 else ledger.restock)


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with the same entries, whose locks are always taken in one order: a queue that moves.

    Args:
        app: An ASGI app.
        armed: Whether the entries are made.
    """
    ledger = Ledger()
    return _booked(app, armed, lambda: ledger.sell)


def _booked(app: Any, armed: Callable[[], bool], entry: Callable[[], Callable[[], None]]) -> Any:
    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed():
            with stage("sentiment.preprocess"):
                await asyncio.to_thread(entry())
        await app(scope, receive, send)

    return handle
