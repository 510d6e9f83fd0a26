"""How long work waits for a thread of the event loop's executor, and what its threads are busy with.

Measures  seconds from handing a call that does nothing to the loop's default executor until a thread runs it: one such
          call at a time, about one a second; threads of all executors, how many are busy, and where.
Source    loop.run_in_executor(None, ...), what `asyncio.to_thread` uses; sys._current_frames() for the threads.
Error     the wait for the interpreter's lock and for a CPU is in it: some milliseconds on a busy machine. Other
          executors than the default one are seen by their threads alone.
Cost      30 us a second, and one thread of the executor for the time of a call that does nothing.
Absent    while no executor has a thread: then nothing is handed over, so that an app without one gets none.
Explains  thread_pool_exhausted
Memory    64 threads; the page shows 4 places, with 10 lines each.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

from probes.event_loop import format_stack

__all__ = ["ExecutorWait"]

MOST_THREADS: Final = 64
SHOWN: Final = 4
FRAMES: Final = 10
# Below this nobody waits, and nobody need know where the threads are.
TELLING_S: Final = 0.05
_POOL: Final = ("concurrent/futures/thread.py", "_worker")


class ExecutorWait:
    """Hands a call that does nothing over, again and again, and takes the time.

    Args:
        frames: Thread id -> innermost frame.
        clock: Seconds.
    """

    def __init__(
        self,
        frames: Callable[[], Mapping[int, FrameType]] = sys._current_frames,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._frames = frames
        self._clock = clock
        self._asked = False
        self._handed_over: float | None = None
        self._longest: float | None = None

    def reading(self, loop: asyncio.AbstractEventLoop | None) -> dict[str, Any]:
        """Return the status page's part, and hand the next call over; called on another thread than the loop's.

        Args:
            loop: The loop; None while there is none.
        """
        threads = 0
        busy: dict[tuple[str, ...], int] = {}
        since, longest = self._handed_over, self._longest
        waited = longest if since is None else max(longest or 0.0, self._clock() - since)
        for frame in list(self._frames().values())[:MOST_THREADS]:
            if not _of_pool(frame):
                continue
            threads += 1
            if waited is not None and waited > TELLING_S and not _is_worker(frame):
                stack = tuple(format_stack(frame, FRAMES))
                busy[stack] = busy.get(stack, 0) + 1
        if not threads:
            return {}
        self._longest = None
        if loop is not None and not self._asked:
            self._asked = True
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(self._hand_over, loop)
        if waited is None:
            return {}
        places = sorted(busy.items(), key=lambda one: -one[1])[:SHOWN]
        return {
            "executor": {
                "wait_s": round(waited, 6),
                "threads": threads,
                "busy": sum(busy.values()),
                "places": [{"threads": count, "stack": list(stack)} for stack, count in places],
            }
        }

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._handed_over = self._clock()
        try:
            loop.run_in_executor(None, self._run)
        except RuntimeError:  # it was shut down, for good
            self._handed_over = None

    def _run(self) -> None:
        since, self._handed_over = self._handed_over, None
        if since is not None:
            self._longest = max(self._longest or 0.0, self._clock() - since)
        self._asked = False


def _is_worker(frame: FrameType) -> bool:
    return frame.f_code.co_name == _POOL[1] and frame.f_code.co_filename.endswith(_POOL[0])


def _of_pool(frame: FrameType) -> bool:
    at: FrameType | None = frame
    while at is not None:
        if _is_worker(at):
            return True
        at = at.f_back
    return False
