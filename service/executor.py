"""Threads that do what would block the event loop, behind a queue with a bound.

`concurrent.futures` has no bound, and what is cancelled there stays in its queue until a thread comes by: under a hung
model it would grow for ever. Here a place is held from submission until a thread has finished or skipped the work, so a
hung model fills the places and the next request is told at once.

Memory: `threads + places` jobs, each with the text of one request.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

__all__ = ["BoundedExecutor", "DeadlineExceeded", "QueueFull"]

T = TypeVar("T")


class QueueFull(Exception):  # noqa: N818 - says what is wrong
    """Every place is taken; nothing was handed over."""


class DeadlineExceeded(Exception):  # noqa: N818 - says what is wrong
    """The work was not done in time; its result, if it still comes, is thrown away."""


class _Job(Generic[T]):
    __slots__ = ("abandoned", "future", "loop", "submitted_ns", "work")

    def __init__(self, work: Callable[[int], T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.abandoned = False
        self.submitted_ns = time.perf_counter_ns()

    def settle(self, result: T | None, error: BaseException | None) -> None:
        """Hand the result to the waiting task; runs in the loop's thread."""
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)  # type: ignore[arg-type]  # None only together with an error

    def expire(self) -> None:
        """Give up waiting; runs in the loop's thread."""
        if not self.future.done():
            self.abandoned = True
            self.future.set_exception(DeadlineExceeded())


class BoundedExecutor:
    """A fixed number of daemon threads and a fixed number of places for work that waits or runs.

    Args:
        threads: Threads; they run from `start` to `close`.
        places: Most jobs that are waiting or running at one time.
        name: Prefix of the threads' names.
    """

    def __init__(self, threads: int, places: int, name: str = "inference") -> None:
        self.places = places
        self._jobs: SimpleQueue[_Job[object] | None] = SimpleQueue()
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
        """Jobs that wait or run, abandoned ones included until a thread is rid of them."""
        return self._submitted - sum(self._finished)

    async def run(self, work: Callable[[int], T], deadline_seconds: float) -> T:
        """Do the work in a thread and wait for it; must be called from one event loop only.

        Args:
            work: Called with the nanoseconds that it waited for a thread.
            deadline_seconds: Most time from now to the result.

        Raises:
            QueueFull: If every place is taken.
            DeadlineExceeded: If the result is not there in time.
        """
        if self.pending >= self.places:
            raise QueueFull
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(work, loop)
        self._submitted += 1
        self._jobs.put(job)  # type: ignore[arg-type]  # the queue never looks into a job
        timer = loop.call_later(deadline_seconds, job.expire)
        try:
            return await job.future
        finally:
            timer.cancel()
            # Also when the waiting task was cancelled: nobody wants the result then.
            job.abandoned = True

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
            failure: BaseException | None = None
            skip = job.abandoned
            if not skip:
                try:
                    result = job.work(time.perf_counter_ns() - job.submitted_ns)
                except Exception as error:  # noqa: BLE001 - handed to the waiting task, which raises it
                    failure = error
            self._finished[index] += 1
            if not skip:
                try:
                    job.loop.call_soon_threadsafe(job.settle, result, failure)
                except RuntimeError:
                    # The loop was closed while the work ran; there is nobody left to tell.
                    continue
            # A thread that waits for its next job must not keep the last one's text alive.
            del job, result, failure
