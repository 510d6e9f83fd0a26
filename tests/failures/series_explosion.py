"""Somebody sets a label with an id in it: every request brings a value that was never there before."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from itertools import count
from typing import Any

from probes import current

SLUG = "series_explosion"
# as many as a label of a large shop's branches has, and within what the recorder takes for one label
KNOWN_VALUES = 200


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with a label that holds a fresh id for each request.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    return labelling(app, armed, lambda: f"basket-{uuid.uuid4()}")


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with a label of many known values.

    Args:
        app: An ASGI app.
        armed: Whether the label is set.
    """
    numbers = count()
    return labelling(app, armed, lambda: f"branch-{next(numbers) % KNOWN_VALUES}")


def labelling(app: Any, armed: Callable[[], bool], value: Callable[[], str]) -> Any:
    """Return *app* with a label of its own on each request."""

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        record = current()
        if scope["type"] == "http" and record is not None and armed():
            record.set(place=value())
        await app(scope, receive, send)

    return handle
