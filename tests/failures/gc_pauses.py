"""Millions of objects that refer to each other are kept, and full collections are made again and again."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

SLUG = "gc_pauses"
# two lists each that refer to each other: 174 MB in all, and about 0.16 s for a full collection
PAIRS = 1_000_000
PAIRS_A_REQUEST = 20_000
# at 20 requests a second: two full collections a second
COLLECT_EVERY = 10
# what each of the twin's requests allocates and gives back: as many objects, none of which can be part of a cycle
BURST = 20_000


class Sessions:
    """Sessions and their visitors, which know each other; nobody takes one out."""

    def __init__(self, most: int = PAIRS) -> None:
        self.most = most
        self.kept: list[Any] = []
        self.asked = 0

    def visit(self) -> None:
        """Keep some more until there are enough; clean up after every tenth visit, as somebody once advised."""
        for _ in range(min(PAIRS_A_REQUEST, self.most - len(self.kept))):
            session: list[Any] = [None]
            session[0] = [session]
            self.kept.append(session)
        self.asked += 1
        if self.asked % COLLECT_EVERY == 0:
            gc.collect()


def allocate(number: int = BURST) -> int:
    """Make many objects at once and let go of them: the allocator has work, the collector has none."""
    return len([bytes(64) for _ in range(number)])


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with a visit before each request.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    return _before(app, armed, Sessions().visit)


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with a burst of allocations before each request, all of them given back at its end.

    Args:
        app: An ASGI app.
        armed: Whether they are made.
    """
    return _before(app, armed, allocate)


def _before(app: Any, armed: Callable[[], bool], work: Callable[[], Any]) -> Any:
    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed():
            work()
        await app(scope, receive, send)

    return handle
