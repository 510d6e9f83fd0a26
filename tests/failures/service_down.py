"""SIGKILL of all processes of the service while requests are in flight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "service_down"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Kill the service and leave it dead; nobody restarts it until the drill ends.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.kill_service()
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Restart the exporter instead: figures stop for a moment, the service does not.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_exporter()
    yield
