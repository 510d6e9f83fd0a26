"""A daemon thread that calls one function at a steady pace until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Heartbeat"]


class Heartbeat:
    """Calls *beat* about every *period_s* seconds on a thread of its own.

    Args:
        period_s: Seconds between two beats.
        beat: What to do; it must not raise.
    """

    def __init__(self, period_s: float, beat: Callable[[], None]) -> None:
        self._period_s = period_s
        self._beat = beat
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inferdeck-heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, patience_s: float = 2.0) -> None:
        """Stop the thread and wait for its last beat.

        Args:
            patience_s: How long to wait.
        """
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(patience_s)

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._beat()
