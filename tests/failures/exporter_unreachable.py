"""The exporter is killed and stays away; the service goes on and still records."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SLUG = "exporter_unreachable"
# shorter than the 5 s that a scrape may take: slow, but an answer
PAUSE_SECONDS = 3.0


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Kill the exporter and leave it dead; nobody restarts it until the drill ends.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.kill_exporter()
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Stop the exporter for a moment instead: one slow scrape, and it answers again.

    Args:
        stack: The drill's handle on the stack.
    """
    pids = stack.exporter_pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    go_on = threading.Timer(PAUSE_SECONDS, _resume, [pids])
    go_on.start()
    try:
        yield
    finally:
        go_on.cancel()
        _resume(pids)


def _resume(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
