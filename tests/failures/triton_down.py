"""SIGKILL of Triton with all that belongs to it, its supervisor included, so that nothing listens any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "triton_down"
BACKEND = "triton"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Kill Triton and leave it dead; nobody starts it again until the drill ends.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.kill_triton()
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Restart Triton as a deploy does: a few seconds, in which the model in process answers.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_triton()
    yield
