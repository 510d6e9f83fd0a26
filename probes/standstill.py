"""Threads that do not move while a request does not end: what hangs, and in which lines.

Measures  once a request has been in flight for 5 s: the threads whose Python stack has been the same for 5 s, their
          stacks, and whether each waits for a lock or in a call.
Source    sys._current_frames() and the table of requests in flight, once a second on the heartbeat thread.
Error     a thread that comes back to the same instruction of the same call at each look is taken for one that stands;
          how long it stands is known to a second. A lock that native code takes looks like a call.
Cost      a copy of the table (0.1 MB at 1,024 slots) a second; 5 to 20 us for each thread while a request is that old.
Absent    threads that wait for work are not counted; without an old request there is nothing to tell.
Explains  worker_deadlock
Memory    64 threads; the page shows 8 places, with 10 lines each, never the value of a variable. One frame of each
          thread is held from look to look while a request is that old: only so it is sure to be the same call.
"""

from __future__ import annotations

import dis
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any, Final

from probes.event_loop import format_stack

__all__ = ["OLD_REQUEST_S", "STILL_S", "Standstill", "waits_for"]

OLD_REQUEST_S: Final = 5.0
STILL_S: Final = 5.0
MOST_THREADS: Final = 64
SHOWN: Final = 8
FRAMES: Final = 10
NAME_CHARACTERS: Final = 40
# Where threads wait for work: an event loop, a selector; and, called right from a thread's own function, a queue.
_LOOPS: Final = ("selectors.py", "base_events.py", "runners.py")
_WAITING: Final = ("threading.py", "queue.py")
_ENTERS: Final = frozenset({"acquire", "__enter__", "__aenter__"})


class Standstill:
    """Compares the stacks of all threads from look to look.

    Args:
        frames: Thread id -> innermost frame.
        clock: Seconds.
        names: Thread id -> name.
    """

    def __init__(
        self,
        frames: Callable[[], Mapping[int, FrameType]] = sys._current_frames,
        clock: Callable[[], float] = time.monotonic,
        names: Callable[[], Mapping[int, str]] | None = None,
    ) -> None:
        self._frames = frames
        self._clock = clock
        self._names = names or (lambda: {one.ident or 0: one.name for one in threading.enumerate()})
        # Thread -> its innermost frame and instruction at the last look, and since when it is there.
        self._known: dict[int, tuple[FrameType, int, float]] = {}

    def reading(self, oldest_request_s: float | None) -> dict[str, Any]:
        """Return the status page's part.

        Args:
            oldest_request_s: Age of the oldest request in flight, seconds; None when there is none.
        """
        if oldest_request_s is None or oldest_request_s < OLD_REQUEST_S:
            self._known = {}
            return {"standing": {"lock": 0, "call": 0, "places": []}}
        now, known, names = self._clock(), self._known, self._names()
        self._known = {}
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        counts = {"lock": 0, "call": 0}
        for thread, frame in list(self._frames().items())[:MOST_THREADS]:
            if thread == threading.get_ident() or _idle(frame):
                continue
            before, instruction, since = known.get(thread, (None, 0, now))
            if before is not frame or instruction != frame.f_lasti:
                since = now
            self._known[thread] = (frame, frame.f_lasti, since)
            if now - since < STILL_S:
                continue
            waits = waits_for(frame)
            counts[waits] += 1
            stack = format_stack(frame, FRAMES)
            # Many stand behind those who hold: one entry for all of a place, so that each place is shown.
            place = found.setdefault(tuple(stack), {"threads": 0, "still_s": 0.0, "waits": waits, "stack": stack})
            place["threads"] += 1
            place["still_s"] = max(place["still_s"], round(now - since, 1))
            place.setdefault("name", names.get(thread, "")[:NAME_CHARACTERS])
        return {"standing": {**counts, "places": list(found.values())[:SHOWN]}}


def waits_for(frame: FrameType) -> str:
    """Return "lock" if a frame's thread waits in `with lock:` or `.acquire()`, else "call".

    Args:
        frame: The innermost frame of the thread.
    """
    if _file(frame.f_code) in _WAITING:
        return "lock"
    last = ""
    # The name that was loaded last before the instruction: what is being called.
    for one in dis.get_instructions(frame.f_code):
        if one.offset > frame.f_lasti:
            break
        if one.opname in ("BEFORE_WITH", "SETUP_WITH"):
            last = "__enter__"
        elif one.opname.startswith("LOAD_") and isinstance(one.argval, str):
            last = one.argval
    return "lock" if last in _ENTERS else "call"


def _idle(frame: FrameType) -> bool:
    """Return whether a thread waits for work: in a loop, or right in the function that it was made for."""
    if _file(frame.f_code) in _LOOPS:
        return True
    at: FrameType | None = frame
    while at is not None and _file(at.f_code) in _WAITING:
        at = at.f_back
    return at is None or at.f_back is None or _file(at.f_back.f_code) == "threading.py"


def _file(code: CodeType) -> str:
    return code.co_filename.rsplit("/", 1)[-1]
