"""Work behind a bounded queue."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.executor import BoundedExecutor, DeadlineExceeded, QueueFull

pytestmark = pytest.mark.anyio


@pytest.fixture
def executor() -> Iterator[BoundedExecutor]:
    """Return an executor of one thread and two places."""
    own = BoundedExecutor(threads=1, places=2)
    own.start()
    yield own
    own.close()


async def test_returns_what_the_work_returns(executor: BoundedExecutor) -> None:
    """The work is called with the time that it waited, in another thread."""
    seen: list[int] = []

    def work(waited_ns: int) -> int:
        seen.append(waited_ns)
        return threading.get_ident()

    assert await executor.run(work, 5) != threading.get_ident()
    assert seen[0] >= 0
    assert executor.pending == 0


async def test_raises_what_the_work_raises(executor: BoundedExecutor) -> None:
    """An exception crosses over as it is, and its place is free again."""

    def work(_waited_ns: int) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await executor.run(work, 5)
    assert executor.pending == 0


async def test_hung_work_keeps_its_place(executor: BoundedExecutor, until: Any) -> None:
    """Deadlines free the caller, not the place; a full queue refuses at once, and what was abandoned never runs."""
    gate = threading.Event()
    ran: list[str] = []
    with pytest.raises(DeadlineExceeded):
        await executor.run(lambda _ns: gate.wait(30), 0.02)
    with pytest.raises(DeadlineExceeded):
        await executor.run(lambda _ns: ran.append("abandoned"), 0.02)
    with pytest.raises(QueueFull):
        await executor.run(lambda _ns: ran.append("refused"), 5)
    assert executor.pending == 2
    gate.set()
    await until(lambda: executor.pending == 0)
    await executor.run(lambda _ns: ran.append("last"), 5)
    assert ran == ["last"]


async def test_cancelled_caller_abandons_its_work(executor: BoundedExecutor, until: Any) -> None:
    """A task that is cancelled while its work waits is not worked for."""
    gate = threading.Event()
    ran: list[str] = []
    first = asyncio.create_task(executor.run(lambda _ns: gate.wait(30), 30))
    second = asyncio.create_task(executor.run(lambda _ns: ran.append("cancelled"), 30))
    await until(lambda: executor.pending == 2)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    assert await first is True
    await until(lambda: executor.pending == 0)
    assert ran == []


async def test_idle_thread_keeps_nothing_of_its_last_work(executor: BoundedExecutor) -> None:
    """A text must not live in a waiting thread until the next request comes."""

    class Text:
        pass

    def make() -> tuple[Callable[[int], bool], weakref.ref[Text]]:
        text = Text()

        def work(_waited_ns: int) -> bool:
            return isinstance(text, Text)

        return work, weakref.ref(text)

    work, alive = make()
    assert await executor.run(work, 5)
    del work
    await asyncio.sleep(0.02)
    gc.collect()
    assert alive() is None


async def test_many_callers_get_their_own_results() -> None:
    """Results are not mixed up between callers and threads."""
    executor = BoundedExecutor(threads=4, places=500)
    executor.start()

    def echo(number: int) -> Callable[[int], int]:
        return lambda _waited_ns: number

    results = await asyncio.gather(*(executor.run(echo(i), 20) for i in range(500)))
    executor.close()
    assert results == list(range(500))


def test_closed_loop_does_not_end_the_thread(executor: BoundedExecutor) -> None:
    """Work whose loop is gone is dropped; the thread serves the next loop's work."""
    gate = threading.Event()

    async def leave() -> None:
        task = asyncio.create_task(executor.run(lambda _ns: gate.wait(30), 30))
        await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(leave())
    gate.set()
    assert asyncio.run(executor.run(lambda _ns: 7, 5)) == 7


def test_close_ends_the_threads_and_does_not_wait_for_hung_ones() -> None:
    """A hung model must not keep the process from ending."""
    executor = BoundedExecutor(threads=1, places=1, name="hung-test")
    executor.start()
    gate = threading.Event()

    async def hang() -> None:
        with pytest.raises(DeadlineExceeded):
            await executor.run(lambda _ns: gate.wait(30), 0.01)

    asyncio.run(hang())
    executor.close(wait_seconds=0.01)
    (thread,) = [t for t in threading.enumerate() if t.name == "hung-test-0"]
    assert thread.daemon
    gate.set()
    thread.join(5)
    assert not thread.is_alive()
