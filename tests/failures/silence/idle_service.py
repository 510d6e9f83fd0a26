"""Nobody sends anything: no requests, no rows, and nothing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "idle_service"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send nothing, and then as much as before.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.set_rate(0.0)
    try:
        yield
    finally:
        stack.set_rate(stack.base_rate)
