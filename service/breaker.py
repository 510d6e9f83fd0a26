"""A circuit breaker: after failures in a row nobody is asked for a while, then one call tries whether it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Literal

__all__ = ["STATES", "Breaker", "BreakerState"]

BreakerState = Literal["closed", "half_open", "open"]
STATES: Final[tuple[BreakerState, ...]] = ("closed", "half_open", "open")


class Breaker:
    """Safe for many threads. Every `allow` that was True must be followed by `succeeded`, `failed` or `released`.

    Args:
        failures: So many in a row open it.
        pause_seconds: How long it stays open at first; doubled by each probe that fails.
        longest_seconds: Longest pause.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        failures: int = 5,
        pause_seconds: float = 1.0,
        longest_seconds: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit, self._first_pause, self._longest = failures, pause_seconds, longest_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._pause = pause_seconds
        self._open_until = 0.0
        self._state: BreakerState = "closed"
        self._probing_until = 0.0
        self.opened = 0

    @property
    def state(self) -> BreakerState:
        """Where it stands: open, or half open from the end of a pause until a probe has succeeded."""
        with self._lock:
            return self._now()

    def _now(self) -> BreakerState:
        if self._state == "open" and self._clock() >= self._open_until:
            self._state = "half_open"
            self._probing_until = 0.0
        return self._state

    def allow(self) -> bool:
        """Return whether to call: always when closed, never when open, one at a time when half open."""
        with self._lock:
            state = self._now()
            if state == "half_open":
                # a probe whose caller never told how it went must not keep the door shut for ever
                if self._clock() < self._probing_until:
                    return False
                self._probing_until = self._clock() + self._longest
            return state != "open"

    def succeeded(self) -> None:
        """Take note of a call that worked; one that began before it opened does not close it."""
        with self._lock:
            if self._now() == "open":
                return
            self._in_a_row, self._pause, self._state = 0, self._first_pause, "closed"

    def failed(self) -> None:
        """Take note of a call that did not work."""
        with self._lock:
            state = self._now()
            self._in_a_row += 1
            if state == "half_open":
                self._pause = min(self._pause * 2, self._longest)
                self._open()
            elif state == "closed" and self._in_a_row >= self._limit:
                self._open()

    def released(self) -> None:
        """Take note of a call that says nothing about who was called: when half open, the next one may try."""
        with self._lock:
            self._probing_until = 0.0

    def _open(self) -> None:
        self._state = "open"
        self._open_until = self._clock() + self._pause
        self.opened += 1
