"""Lag of the event loop, and what blocks it.

Measures  how late a tick every 20 ms comes, in seconds; time in lags over 0.1 s; the blocking stack of such a lag.
Source    loop.call_later for the tick; sys._current_frames() from the heartbeat thread while the tick is late.
Error     a block shorter than the tick's period may be seen shortened by up to it; the stack is the one
          found 0.1 to 0.15 s after the block began, or none when the blocking code holds the GIL throughout.
Cost      50 ticks a second of about 10 us.
Absent    while no loop runs the tick's age is None.
Explains  event_loop_blocked
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from time import perf_counter
from types import FrameType
from typing import Any, Final

from probes.histogram import Histogram

__all__ = ["EventLoopWatch", "format_stack"]

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
EPISODES: Final = 32
FRAMES: Final = 12
FRAME_CHARACTERS: Final = 200


def format_stack(frame: FrameType | None, frames: int = FRAMES) -> list[str]:
    """Return ``file:line function`` of a frame and its callers, innermost first; never any local variable.

    Args:
        frame: The innermost frame.
        frames: Most lines to return.
    """
    lines: list[str] = []
    while frame is not None and len(lines) < frames:
        code = frame.f_code
        # A long path is cut at its front: the end of it is what tells files apart.
        place = f"{code.co_filename}:{frame.f_lineno} "[-(FRAME_CHARACTERS - 80) :]
        lines.append(f"{place}{code.co_qualname if sys.version_info >= (3, 11) else code.co_name}"[:FRAME_CHARACTERS])
        frame = frame.f_back
    return lines


class EventLoopWatch:
    """Watches one event loop: a tick on the loop, a check on another thread.

    Args:
        tick_s: Seconds between two ticks.
        blocked_s: Lag in seconds from which the loop counts as blocked.
    """

    def __init__(self, tick_s: float = 0.02, blocked_s: float = 0.1) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._tick_s = tick_s
        self._blocked_s = blocked_s
        self._lag = Histogram(BOUNDS_S)
        self._blocked_total_s = 0.0
        self._episodes: deque[dict[str, Any]] = deque(maxlen=EPISODES)
        self._due = 0.0
        self._thread_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._caught: tuple[float, list[str]] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tick on *loop*; must be called on it. A loop that has ended gives way to a new one.

        Args:
            loop: The running event loop.
        """
        # One loop is watched: several at once in a process would need a series each.
        if self.loop is None or (self.loop is not loop and not self.loop.is_running()):
            self.loop = loop
            self._thread_id = threading.get_ident()
            self._schedule()

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()
        self.loop = self._timer = self._caught = None

    def check(self) -> None:
        """Take the loop's stack if its tick is late and this lag has none yet; called from another thread."""
        due = self._due
        if not self._running() or self._caught is not None or perf_counter() - due < self._blocked_s:
            return
        stack = format_stack(sys._current_frames().get(self._thread_id))
        if self._due == due:  # else the tick came meanwhile and the stack is not the blocking one
            self._caught = (due, stack)

    def reading(self) -> dict[str, Any]:
        """Return the status page's part; an episode that still goes on is the last one of ``blocked``."""
        # Read by another thread: a float is replaced as a whole, so no lock is needed.
        late_s = perf_counter() - self._due
        running = self._running()
        episodes = list(self._episodes)
        if running and late_s > self._blocked_s:
            episodes = [*episodes, self._episode(late_s)][-EPISODES:]
        return {
            "loop_tick_age_s": max(0.0, late_s + self._tick_s) if running else None,
            "loop_lag": self._lag.reading(),
            "loop_blocked_s": self._blocked_total_s,
            "blocked": episodes,
        }

    def _running(self) -> bool:
        return self.loop is not None and self.loop.is_running()

    def _schedule(self) -> None:
        if self.loop is not None:
            self._due = perf_counter() + self._tick_s
            self._timer = self.loop.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        late_s = max(0.0, perf_counter() - self._due)
        # A lag is what every request on the loop had to wait: its count and sum are the evidence of a block.
        self._lag.observe(late_s)
        if late_s > self._blocked_s:
            self._blocked_total_s += late_s
            self._episodes.append(self._episode(late_s))
        self._caught = None
        self._schedule()

    def _episode(self, late_s: float) -> dict[str, Any]:
        caught = self._caught
        stack = caught[1] if caught is not None and caught[0] == self._due else []
        return {
            "start_unix_ns": time.time_ns() - int(late_s * 1e9),
            "duration_ns": int(late_s * 1e9),
            "stack": stack,
        }
