"""A new version of the model that takes many times as long gets a tenth of the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _versions import equal, rolled_out, slower  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "canary_regression"
SHARE = 0.1


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll the slow version out.

    Args:
        stack: The drill's handle on the stack.
    """
    with rolled_out(stack, slower, SHARE):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Roll out a version that answers alike and takes as long.

    Args:
        stack: The drill's handle on the stack.
    """
    with rolled_out(stack, equal, SHARE):
        yield
