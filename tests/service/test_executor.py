"""Work in threads, settled in the event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.executor import Executor

pytestmark = pytest.mark.anyio


@pytest.fixture
def executor() -> Iterator[Executor]:
    """Return an executor of one thread."""
    own = Executor(threads=1)
    own.start()
    yield own
    own.close()


async def done(executor: Executor, work: Callable[[], Any]) -> Any:
    """Do work in a thread and return what settled it, with the thread that settled."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    executor.post(work, lambda result, error: future.set_result((result, error, threading.get_ident())))
    return await asyncio.wait_for(future, 20)


async def test_settles_in_the_loops_thread_what_a_thread_did(executor: Executor) -> None:
    """The work runs elsewhere; whoever waits is told in the loop."""
    worked, error, settled = await done(executor, threading.get_ident)
    assert (error, settled) == (None, threading.get_ident())
    assert worked != settled
    assert executor.pending == 0


async def test_settles_with_what_the_work_raises(executor: Executor) -> None:
    """An exception crosses over as it is, and the thread serves on."""
    boom = KeyError("x")

    def work() -> None:
        raise boom

    assert (await done(executor, work))[:2] == (None, boom)
    assert (await done(executor, lambda: 7))[:2] == (7, None)


async def test_a_panic_of_native_code_costs_neither_thread_nor_slot(executor: Executor) -> None:
    """What is no Exception (a panic in a tokenizer's Rust) is told by its name, and the thread serves on."""

    class PanicError(BaseException):
        pass

    def work() -> None:
        raise PanicError("secret text")

    result, error, _ = await done(executor, work)
    assert (None, "PanicError") == (result, str(error))
    assert (await done(executor, lambda: 7))[:2] == (7, None)


async def test_idle_thread_keeps_nothing_of_its_last_work(executor: Executor) -> None:
    """A text must not live in a waiting thread until the next request comes."""

    class Text:
        pass

    def make() -> tuple[Callable[[], bool], weakref.ref[Text]]:
        text = Text()
        return (lambda: isinstance(text, Text)), weakref.ref(text)

    work, alive = make()
    assert (await done(executor, work))[0]
    del work
    await asyncio.sleep(0.02)
    gc.collect()
    assert alive() is None


async def test_many_callers_get_their_own_results() -> None:
    """Results are not mixed up between callers and threads."""
    executor = Executor(threads=4)
    executor.start()

    def echo(number: int) -> Callable[[], int]:
        return lambda: number

    results = await asyncio.gather(*(done(executor, echo(i)) for i in range(300)))
    executor.close()
    assert [result for result, _, _ in results] == list(range(300))


def test_closed_loop_does_not_end_the_thread(executor: Executor) -> None:
    """Work whose loop is gone is dropped; the thread serves the next loop's work."""
    gate = threading.Event()

    async def leave() -> None:
        executor.post(lambda: gate.wait(30), lambda _result, _error: None)

    asyncio.run(leave())
    gate.set()
    assert asyncio.run(done(executor, lambda: 7))[0] == 7


def test_close_ends_the_threads_and_does_not_wait_for_hung_ones() -> None:
    """A hung model must not keep the process from ending."""
    executor = Executor(threads=1, name="hung-test")
    executor.start()
    gate = threading.Event()

    async def hang() -> None:
        executor.post(lambda: gate.wait(30), lambda _result, _error: None)

    asyncio.run(hang())
    executor.close(wait_seconds=0.01)
    (thread,) = [t for t in threading.enumerate() if t.name == "hung-test-0"]
    assert thread.daemon
    gate.set()
    thread.join(5)
    assert not thread.is_alive()
