"""The collector that takes the spans is killed and stays away; the service goes on and knows nothing of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from inferdeck.stack.jaeger import find_jaeger

SLUG = "collector_down"
COLLECTOR = True
# slower than any target should be, and still within the 10 s that the exporter waits for an answer
PAUSE_SECONDS = 8.0
REST_SECONDS = 4.0


def cannot_cause() -> str | None:
    """Return why there is no collector here that could be killed."""
    return None if find_jaeger() else "no Jaeger here; `make jaeger` compiles one"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Kill the collector and leave it dead.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.kill_collector()
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Stop the collector again and again instead: it answers late, and takes everything.

    Args:
        stack: The drill's handle on the stack.
    """
    pids, ended = stack.collector_pids, threading.Event()

    def stumble() -> None:
        while not ended.is_set():
            _send(pids, signal.SIGSTOP)
            ended.wait(PAUSE_SECONDS)
            _send(pids, signal.SIGCONT)
            ended.wait(REST_SECONDS)

    thread = threading.Thread(target=stumble)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _send(pids, signal.SIGCONT)


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
