"""Lag of the event loop, and what blocks it.

Measures  how late a tick every 20 ms comes, in seconds; time in lags over 0.1 s; of such a lag the blocking stack, the
          CPU seconds of the loop's thread, how long it waited for a CPU, and how long the watching thread did not come
          to run either.
Source    loop.call_later for the tick; sys._current_frames() from the heartbeat thread while the tick is late;
          time.thread_time() and the thread's wait on its run queue (probes/run_queue.py) at each tick.
Error     a block shorter than the tick's period may be seen shortened by up to it; the stack is the last of those found
          when the tick is late by 0.04 and by 0.1 s, each up to a beat later, or none when the blocking code holds the
          GIL throughout.
Cost      50 ticks a second of about 12 us; at most two stacks per lag over 0.04 s, of about 20 us each.
Absent    while no loop runs the tick's age is None.
Explains  event_loop_blocked, cpu_throttled
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

from probes.blockers import Blockers
from probes.histogram import Histogram
from probes.run_queue import RunQueueWait

__all__ = ["EventLoopWatch", "format_stack", "frame_line"]

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
EPISODES: Final = 32
FRAMES: Final = 12
FRAME_CHARACTERS: Final = 200
# The part of `blocked_s` after which a lag's first stack is taken: waiting for all of it finds short blocks over.
SAMPLE_SHARE: Final = 0.4
# A stack found less than this before the tick may show what the loop did after the block: it is not kept. Twice the
# interpreter's switch interval, in which the loop moves on while the watching thread waits for its turn.
TOO_LATE_S: Final = 0.01
MOST_SAMPLES: Final = 2


def format_stack(frame: FrameType | None, frames: int = FRAMES) -> list[str]:
    """Return ``file:line function`` of a frame and its callers, innermost first; never any local variable.

    Args:
        frame: The innermost frame.
        frames: Most lines to return.
    """
    lines: list[str] = []
    while frame is not None and len(lines) < frames:
        lines.append(frame_line(frame))
        frame = frame.f_back
    return lines


def frame_line(frame: FrameType) -> str:
    """Return ``file:line function`` of one frame, of bounded length.

    Args:
        frame: The frame.
    """
    code = frame.f_code
    # A long path is cut at its front: the end of it is what tells files apart.
    place = f"{code.co_filename}:{frame.f_lineno} "[-(FRAME_CHARACTERS - 80) :]
    return f"{place}{code.co_qualname if sys.version_info >= (3, 11) else code.co_name}"[:FRAME_CHARACTERS]


class EventLoopWatch:
    """Watches one event loop: a tick on the loop, a check on another thread.

    Args:
        tick_s: Seconds between two ticks.
        blocked_s: Lag in seconds from which the loop counts as blocked.
        beat_s: Seconds between two calls of `check`; only a longer pause of it counts as late.
    """

    def __init__(self, tick_s: float = 0.02, blocked_s: float = 0.1, beat_s: float = 0.025) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._tick_s = tick_s
        self._blocked_s = blocked_s
        self._beat_s = beat_s
        self._lag = Histogram(BOUNDS_S)
        self._blocked_total_s = 0.0
        self._episodes: deque[dict[str, Any]] = deque(maxlen=EPISODES)
        self._blockers = Blockers()
        self._due = 0.0
        self._thread_id = 0
        self._timer: asyncio.TimerHandle | None = None
        # What was found of the lag of one due tick: (due, found at, stack), oldest first; at most two.
        self._caught: tuple[tuple[float, float, list[str]], ...] = ()
        self._cpu_s = 0.0
        self._run_queue: RunQueueWait | None = None
        self._waited_s: float | None = None
        self._checked_at = self._longest_pause_s = 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tick on *loop*; must be called on it. A loop that has ended gives way to a new one.

        Args:
            loop: The running event loop.
        """
        # One loop is watched: several at once in a process would need a series each.
        if self.loop is None or (self.loop is not loop and not self.loop.is_running()):
            self.loop = loop
            self._thread_id = threading.get_ident()
            self._run_queue = RunQueueWait()
            self._schedule()

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()
        if self._run_queue is not None:
            self._run_queue.close()
        self.loop = self._timer = self._run_queue = None
        self._caught = ()

    def check(self) -> None:
        """Take the loop's stack if its tick is late, twice in one lag at most; called from another thread."""
        now, due = perf_counter(), self._due
        if self._checked_at:
            self._longest_pause_s = max(self._longest_pause_s, now - self._checked_at)
        self._checked_at = now
        taken = [one for one in self._caught if one[0] == due]
        wait_s = self._blocked_s * (1.0 if taken else SAMPLE_SHARE)
        if not self._running() or len(taken) >= MOST_SAMPLES or now - due < wait_s:
            return
        stack = format_stack(sys._current_frames().get(self._thread_id))
        if self._due == due:  # else the tick came meanwhile and the stack is not the blocking one
            self._caught = (*taken, (due, perf_counter(), stack))

    def reading(self) -> dict[str, Any]:
        """Return the status page's part; an episode that still goes on is the last one of ``blocked``."""
        # Read by another thread: a float is replaced as a whole, so no lock is needed.
        late_s = perf_counter() - self._due
        running = self._running()
        episodes = list(self._episodes)
        if running and late_s > self._blocked_s:
            episodes = [*episodes, self._episode(late_s, None)][-EPISODES:]
        waited_s = self._run_wait_s()
        told = {} if waited_s is None else {"loop_wait_s": waited_s}
        return told | {
            "loop_tick_age_s": max(0.0, late_s + self._tick_s) if running else None,
            "loop_lag": self._lag.reading(),
            "loop_blocked_s": self._blocked_total_s,
            "blocked": episodes,
            "blockers": self._blockers.reading(),
        }

    def _running(self) -> bool:
        return self.loop is not None and self.loop.is_running()

    def _schedule(self) -> None:
        if self.loop is not None:
            self._cpu_s = time.thread_time()
            self._waited_s = self._run_wait_s()
            self._longest_pause_s = 0.0
            self._due = perf_counter() + self._tick_s
            self._timer = self.loop.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        late_s = max(0.0, perf_counter() - self._due)
        # A lag is what every request on the loop had to wait: its count and sum are the evidence of a block.
        self._lag.observe(late_s)
        if late_s > self._blocked_s:
            self._blocked_total_s += late_s
            episode = self._episode(late_s, time.thread_time() - self._cpu_s)
            self._episodes.append(episode)
            self._blockers.add(episode)
        self._caught = ()
        self._schedule()

    def _run_wait_s(self) -> float | None:
        queue = self._run_queue  # another thread may stop the watch meanwhile
        return queue.seconds() if queue is not None else None

    def _episode(self, late_s: float, cpu_s: float | None) -> dict[str, Any]:
        """Return what is known of a lag; without *cpu_s* it still goes on."""
        now = perf_counter()
        # A block that goes on cannot have been left behind: its due tick has not come.
        ends = now if cpu_s is None else now - TOO_LATE_S
        stacks = [stack for due, found_at, stack in self._caught if due == self._due and found_at <= ends]
        episode = {
            "start_unix_ns": time.time_ns() - int(late_s * 1e9),
            "duration_ns": int(late_s * 1e9),
            "stack": stacks[-1] if stacks else [],
        }
        if self._checked_at:
            pause_s = max(self._longest_pause_s, now - self._checked_at)
            episode["thread_late_ns"] = int(min(max(0.0, pause_s - self._beat_s), late_s) * 1e9)
        if cpu_s is not None:
            episode["cpu_ns"] = int(cpu_s * 1e9)
            waited_s = self._run_wait_s()
            if waited_s is not None and self._waited_s is not None:
                episode["run_wait_ns"] = int(max(0.0, waited_s - self._waited_s) * 1e9)
        return episode
