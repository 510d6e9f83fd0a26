"""Coroutines that do not move while a request does not end: which lines await, and whether they wait for a lock.

Measures  once a request has been in flight for 5 s: the asyncio tasks that have awaited at the same place for 5 s, the
          chain of coroutines down to it, and whether it is a lock that nobody has got meanwhile.
Source    asyncio.all_tasks() and each task's chain of awaits, every 2.5 s on the loop itself.
Error     how long a task stands is known to 2.5 s. A lock whose waiters give up after a time seems to move.
Cost      about 10 us for each of 512 tasks at most every 2.5 s, only while a request is that old.
Absent    without an old request, or on a loop that does not come to look (event_loop_blocked). Tasks that no request
          waits in are left out, unless they wait for an asyncio.Lock.
Explains  worker_deadlock, request_stuck
Memory    512 tasks; the page shows 4 places, with 10 lines each, never the value of a variable. One frame of each
          task is held from look to look while a request is that old: only so it is sure to be the same wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import islice
from types import FrameType
from typing import Any, Final, NamedTuple

from probes.event_loop import frame_line
from probes.standstill import OLD_REQUEST_S, STILL_S

__all__ = ["StandingTasks"]

LOOK_S: Final = 2.5
MOST_TASKS: Final = 512
MOST_CHAIN: Final = 64
SHOWN: Final = 4
FRAMES: Final = 10
_LOCKS: Final = "asyncio/locks.py"
_REQUEST: Final = "probes/asgi.py"


class _Wait(NamedTuple):
    """Where one task awaits, and since when it is known to."""

    frame: FrameType
    instruction: int
    since: float
    waits: str
    stack: tuple[str, ...]


class StandingTasks:
    """Compares where a loop's tasks await from look to look.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[asyncio.Task[Any], _Wait] = {}
        self._asked_at: float | None = None
        self._found: dict[str, Any] = _nothing()
        self._failed: Exception | None = None

    def reading(self, loop: asyncio.AbstractEventLoop | None, oldest_request_s: float | None) -> dict[str, Any]:
        """Return the status page's part, as of the last look; called from another thread than the loop's.

        Args:
            loop: The loop that serves requests; None when there is none.
            oldest_request_s: Age of the oldest request in flight, seconds; None when there is none.

        Raises:
            Exception: What the last look raised; said here, since nobody hears it on the loop.
        """
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        if loop is None or loop.is_closed() or oldest_request_s is None or oldest_request_s < OLD_REQUEST_S:
            self._known, self._asked_at, self._found = {}, None, _nothing()
        elif self._asked_at is None or self._clock() - self._asked_at >= LOOK_S:
            self._asked_at = self._clock()
            loop.call_soon_threadsafe(self._try_look, loop)
        return {"standing_tasks": self._found}

    def look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the places of all tasks once; runs on the loop.

        Args:
            loop: The running loop.
        """
        now, known = self._clock(), self._known
        seen = {}
        for task in islice(asyncio.all_tasks(loop), MOST_TASKS):
            if (wait := _wait(task, now)) is not None:
                before = known.get(task)
                same = before is not None and (before.frame, before.instruction) == (wait.frame, wait.instruction)
                seen[task] = wait._replace(since=before.since) if same and before is not None else wait
        # A lock that somebody got since the last look goes round: who waits for it stands in a line that moves.
        moving = {
            before.stack
            for task, before in known.items()
            if before.waits == "lock" and (task not in seen or seen[task].frame is not before.frame)
        }
        self._known = {
            task: wait._replace(since=now) if wait.waits == "lock" and wait.stack in moving else wait
            for task, wait in seen.items()
        }
        self._found = _standing(self._known.values(), now)

    def _try_look(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self.look(loop)
        except Exception as error:  # noqa: BLE001  # a probe's mistake never reaches the service's loop
            self._known, self._found, self._failed = {}, _nothing(), error


def _nothing() -> dict[str, Any]:
    return {"lock": 0, "await": 0, "places": []}


def _standing(waits: Any, now: float) -> dict[str, Any]:
    told = _nothing()
    places: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in waits:
        if now - one.since < STILL_S:
            continue
        told[one.waits] += 1
        place = places.setdefault(one.stack, {"tasks": 0, "still_s": 0.0, "waits": one.waits, "stack": list(one.stack)})
        place["tasks"] += 1
        place["still_s"] = max(place["still_s"], round(now - one.since, 1))
    told["places"] = sorted(places.values(), key=lambda place: (place["waits"] != "lock", -place["tasks"]))[:SHOWN]
    return told


def _wait(task: asyncio.Task[Any], now: float) -> _Wait | None:
    """Return where *task* awaits; None when it runs, or waits for nothing that a request could hang on."""
    chain = _chain(task.get_coro())
    if not chain:
        return None
    inner = chain[-1]
    name = inner.f_code.co_qualname if _file(inner).endswith(_LOCKS) else ""
    lock = name in ("Lock.acquire", "Semaphore.acquire")
    of_request = any(_file(frame).endswith(_REQUEST) for frame in chain)
    if not of_request and name != "Lock.acquire":
        return None
    lines = [frame for frame in reversed(chain) if not _file(frame).endswith(_LOCKS)] or [inner]
    stack = tuple(frame_line(frame) for frame in lines[:FRAMES])
    return _Wait(inner, inner.f_lasti, now, "lock" if lock else "await", stack)


def _chain(awaited: Any) -> list[FrameType]:
    """Return the frames of a coroutine and of what it awaits, outermost first."""
    frames: list[FrameType] = []
    while awaited is not None and len(frames) < MOST_CHAIN:
        frame = next((found for at in ("cr", "gi", "ag") if (found := getattr(awaited, f"{at}_frame", None))), None)
        if frame is None:
            break
        frames.append(frame)
        follow = ("cr_await", "gi_yieldfrom", "ag_await")
        awaited = next((found for at in follow if (found := getattr(awaited, at, None)) is not None), None)
    return frames


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename.replace("\\", "/")
