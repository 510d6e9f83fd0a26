"""How long ago the event loop last ran: told from another thread, so it can be told while the loop is blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["LoopTick"]


class LoopTick:
    """A timer in the loop that leaves its time behind.

    The recorder measures lag far finer; this one is what liveness rests on, and it works without a recorder.

    Args:
        every_seconds: Time between two ticks; the age is never below what has passed of it.
        clock: Monotonic seconds.
    """

    def __init__(self, every_seconds: float = 0.5, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_seconds = every_seconds
        self._clock = clock
        self._last = clock()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def age_seconds(self) -> float:
        """Seconds since the loop last ran; callable from any thread."""
        return max(0.0, self._clock() - self._last)

    def start(self) -> None:
        """Start ticking in the running loop."""
        self._last = self._clock()
        self._timer = asyncio.get_running_loop().call_later(self._every_seconds, self.start)

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
