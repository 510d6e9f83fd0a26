"""A plugin loads the model once more for itself, into the process that has it already."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SLUG = "model_loaded_twice"
# How long the old process and its successor both hold the model.
OVERLAP_SECONDS = 20.0
LOAD = "from service.loading import load_onnx\nfrom service.settings import load_settings\nimport sys, time\n"
HOLD = "held = load_onnx(load_settings().model_dir, 0)\nprint('loaded', flush=True)\ntime.sleep(float(sys.argv[1]))\n"


class Second:
    """Holds a second session while it is wanted."""

    def __init__(self) -> None:
        self._held: list[Any] = []
        self._lock = threading.Lock()

    def keep(self, *, wanted: bool) -> None:
        """Load the model once when it is wanted, and let it go when it is not."""
        if wanted == bool(self._held) or not self._lock.acquire(blocking=False):
            return
        try:
            if not wanted:
                self._held.clear()
            elif not self._held:
                from service.loading import load_onnx
                from service.settings import load_settings

                self._held.append(load_onnx(load_settings().model_dir, 0))
        finally:
            self._lock.release()


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* whose first request after the start of the failure makes a thread load the model again.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    second = Second()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            # Off the loop: what is caused here is a second session, not a blocked loop.
            threading.Thread(target=second.keep, kwargs={"wanted": armed()}, daemon=True).start()
        await app(scope, receive, send)

    return handle


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Start a successor that loads the same model in a process of its own, as an overlapping restart does.

    Args:
        stack: The drill's handle on the stack; not asked for anything.
    """
    del stack
    argv = [sys.executable, "-c", LOAD + HOLD, str(OVERLAP_SECONDS)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], text=True)
    try:
        if child.stdout is None or child.stdout.readline().strip() != "loaded":
            raise RuntimeError("the successor did not load the model")
        time.sleep(0.1)
        yield
    finally:
        child.kill()
        child.wait(10)
        if child.stdout is not None:
            child.stdout.close()
