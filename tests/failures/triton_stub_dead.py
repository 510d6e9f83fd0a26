"""SIGKILL of the processes that run the model inside Triton, again and again; its own readiness stays 200."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SLUG = "triton_stub_dead"
BACKEND = "triton"
EVERY_SECONDS = 10.0


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Kill the stubs every ten seconds until the end: a model that takes its process down.

    Args:
        stack: The drill's handle on the stack.
    """
    ending = threading.Event()

    def kill() -> None:
        while True:
            for stub in stack.triton_pids(stubs=True):
                with suppress(ProcessLookupError):
                    os.kill(stub, signal.SIGKILL)
            if ending.wait(EVERY_SECONDS):
                return

    killer = threading.Thread(target=kill, name="killer")
    killer.start()
    try:
        yield
    finally:
        ending.set()
        killer.join()


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Restart Triton as a deploy does: its stubs end in an orderly way, and nothing is healed.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_triton()
    yield
