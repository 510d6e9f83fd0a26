"""A stack that has just started: no sample before, no row, no healthy time to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "first_minutes"
# it is over once there is a baseline: only the start of a stack can hold it
AT_START = True


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Do nothing: the start itself is what must stay silent.

    Args:
        stack: The drill's handle on the stack.
    """
    del stack
    yield
