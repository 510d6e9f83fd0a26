"""How long work waits for a thread of the loop's executor."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from probes.executor_wait import ExecutorWait


def occupy(started: threading.Barrier, done: threading.Event) -> None:
    """Hold a thread of the executor."""
    started.wait(20)
    done.wait(20)


async def told(watch: ExecutorWait, until_seconds: float = 20.0) -> dict[str, Any]:
    """Read until the watch tells of an executor."""
    loop = asyncio.get_running_loop()
    end = loop.time() + until_seconds
    while loop.time() < end:
        reading = watch.reading(loop)
        if reading:
            return dict(reading["executor"])
        await asyncio.sleep(0.01)
    raise AssertionError("nothing was told")


def test_an_app_without_an_executor_gets_none() -> None:
    """Nothing is handed over while no pool has a thread: the watch makes none."""

    async def main() -> tuple[dict[str, Any], bool]:
        watch = ExecutorWait(frames=dict)
        readings = watch.reading(asyncio.get_running_loop())
        await asyncio.sleep(0.05)
        return readings, watch._asked

    assert ({}, False) == asyncio.run(main())


def test_a_free_thread_takes_the_call_at_once_and_a_taken_pool_does_not() -> None:
    """With all threads taken the wait grows while it goes on; the places of the threads are told with it."""
    now = [100.0]
    watch = ExecutorWait(clock=lambda: now[0])

    async def main() -> list[dict[str, Any]]:
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(int)
        free = await told(watch)
        await asyncio.sleep(0.1)
        watch.reading(loop)
        await asyncio.sleep(0.1)
        loop.set_default_executor(ThreadPoolExecutor(1))
        started, done = threading.Barrier(2), threading.Event()
        busy = loop.run_in_executor(None, occupy, started, done)
        started.wait(20)
        watch.reading(loop)
        await asyncio.sleep(0.2)
        now[0] += 3.0
        taken = await told(watch)
        done.set()
        await busy
        return [free, taken]

    free, taken = asyncio.run(main())

    assert 0.0 == free["wait_s"]
    assert 3.0 == taken["wait_s"]
    assert any("occupy" in line for place in taken["places"] for line in place["stack"])
    assert taken["busy"] >= 1
