"""Threads that do what would block the event loop.

There is no bound here: whoever hands work over, in the event loop, keeps count of what is not yet settled
(service/scheduler/dispatcher.py), so that a hung model fills the threads and nothing else.

Memory: what is handed over.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

__all__ = ["Executor"]

T = TypeVar("T")


class _Job(NamedTuple):
    work: Callable[[], Any]
    settle: Callable[[Any, Exception | None], None]
    loop: asyncio.AbstractEventLoop


class Executor:
    """A fixed number of daemon threads.

    Args:
        threads: Threads; they run from `start` to `close`.
        name: Prefix of the threads' names.
    """

    def __init__(self, threads: int, name: str = "inference") -> None:
        self.threads = threads
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # Each counter has one writer, the loop or one thread, so that none needs a lock.
        self._submitted = 0
        self._finished = [0] * threads
        # Daemon threads: a hung model must not keep the process from ending.
        self._threads = [
            threading.Thread(target=self._serve, args=(i,), name=f"{name}-{i}", daemon=True) for i in range(threads)
        ]

    def start(self) -> None:
        """Start the threads; after any fork, since threads do not live through one."""
        for thread in self._threads:
            thread.start()

    @property
    def pending(self) -> int:
        """Jobs that wait for a thread or run in one."""
        return self._submitted - sum(self._finished)

    def post(self, work: Callable[[], T], settle: Callable[[T | None, Exception | None], None]) -> None:
        """Have the work done by a thread; must be called from one event loop only.

        Args:
            work: Called in a thread.
            settle: Called afterwards in the event loop's thread, with what the work returned or raised.
        """
        self._submitted += 1
        self._jobs.put(_Job(work, settle, asyncio.get_running_loop()))

    def close(self, wait_seconds: float = 1.0) -> None:
        """Let the threads end after the work that is queued, and wait a bounded time for them."""
        for _ in self._threads:
            self._jobs.put(None)
        until = time.monotonic() + wait_seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))

    def _serve(self, index: int) -> None:
        while (job := self._jobs.get()) is not None:
            result: object = None
            failure: Exception | None = None
            try:
                result = job.work()
            except Exception as error:  # noqa: BLE001 - handed to whoever settles the work
                failure = error
            except BaseException as error:  # noqa: BLE001 - a panic in native code must not cost the thread and its slot
                failure = RuntimeError(type(error).__name__)
            self._finished[index] += 1
            try:
                job.loop.call_soon_threadsafe(job.settle, result, failure)
            except RuntimeError:
                # The loop was closed while the work ran; there is nobody left to tell.
                continue
            finally:
                # A thread that waits for its next job must not keep the last one's text alive.
                del job, result, failure
