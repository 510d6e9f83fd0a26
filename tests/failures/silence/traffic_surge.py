"""Ten times the usual traffic for a while: more work, and nothing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "traffic_surge"
# failures.md: ten times
RATIO = 10.0


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send ten times as much, and then as much as before.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.set_rate(RATIO * stack.base_rate)
    try:
        yield
    finally:
        stack.set_rate(stack.base_rate)
