"""Prometheus is stopped and started again: a hole in all series, and alerts that wait begin anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "prometheus_restart"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Restart Prometheus and wait until it is ready.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_prometheus()
    yield
