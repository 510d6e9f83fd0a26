"""One worker of two gets SIGKILL; the parent process starts another in its place."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "worker_killed"
WORKERS = 2


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Kill the last worker, as the kernel does when memory runs out.

    Args:
        stack: The drill's handle on the stack.
    """
    os.kill(stack.worker_pids[-1], signal.SIGKILL)
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Recycle the last worker instead: SIGTERM lets it end its requests and say that it stops.

    Args:
        stack: The drill's handle on the stack.
    """
    os.kill(stack.worker_pids[-1], signal.SIGTERM)
    yield
