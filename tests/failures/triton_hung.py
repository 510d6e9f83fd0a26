"""SIGSTOP of tritonserver: its socket is open and takes connections, and no answer ever comes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SLUG = "triton_hung"
BACKEND = "triton"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Stop the server, and let it go on at the end.

    Args:
        stack: The drill's handle on the stack.
    """
    (server,) = stack.triton_pids()
    os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGCONT)


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Stop the server for a second, as a machine that swaps does: late, not hung.

    Args:
        stack: The drill's handle on the stack.
    """
    (server,) = stack.triton_pids()
    os.kill(server, signal.SIGSTOP)
    try:
        time.sleep(1.0)
    finally:
        os.kill(server, signal.SIGCONT)
    yield
