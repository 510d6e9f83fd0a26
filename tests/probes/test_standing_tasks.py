"""Coroutines that do not move while a request does not end."""

from __future__ import annotations

import asyncio
from typing import Any

from probes.standing_tasks import StandingTasks


async def after_looks(watch: StandingTasks, clock: list[float], looks: int, between: Any = None) -> dict[str, Any]:
    """Return what is told after some looks, three seconds apart by the clock."""
    loop, told = asyncio.get_running_loop(), {}
    for _ in range(looks):
        watch.reading(loop, 9.0)
        await asyncio.sleep(0.02)
        if between is not None:
            await between()
        told = watch.reading(loop, 9.0)["standing_tasks"]
        clock[0] += 3.0
    return told


def watched() -> tuple[StandingTasks, list[float]]:
    """Return a watch and its clock."""
    clock = [0.0]
    return StandingTasks(lambda: clock[0]), clock


async def takes(lock: asyncio.Lock, over: asyncio.Event) -> None:
    """Take a lock and keep it until told."""
    secret = "a customer's text"
    async with lock:
        assert secret
        await over.wait()


def test_tasks_at_a_lock_that_nobody_gives_back_are_told_with_their_line() -> None:
    """Two wait; the one that holds it awaits something else and is no request."""

    async def run() -> dict[str, Any]:
        lock, over, (watch, clock) = asyncio.Lock(), asyncio.Event(), watched()
        tasks = [asyncio.create_task(takes(lock, over)) for _ in range(3)]
        told = await after_looks(watch, clock, 4)
        over.set()
        await asyncio.gather(*tasks)
        return told

    told = asyncio.run(run())
    [place] = told["places"]

    assert (2, 0) == (told["lock"], told["await"])
    assert ("lock", 2) == (place["waits"], place["tasks"])
    assert place["still_s"] >= 6.0
    assert place["stack"][0].endswith("takes")
    assert "customer" not in str(told)


def test_a_line_at_a_lock_that_moves_is_not_told() -> None:
    """One after the other gets it: between two looks the first in the line leaves."""

    async def run() -> dict[str, Any]:
        lock, (watch, clock) = asyncio.Lock(), watched()
        steps = [asyncio.Event() for _ in range(20)]
        tasks = [asyncio.create_task(takes(lock, step)) for step in steps]
        turns = iter(steps)

        async def move() -> None:
            next(turns).set()
            await asyncio.sleep(0.02)

        told = await after_looks(watch, clock, 6, move)
        for step in steps:
            step.set()
        await asyncio.gather(*tasks)
        return told

    assert {"lock": 0, "await": 0, "places": []} == asyncio.run(run())


def test_background_tasks_that_wait_for_work_are_not_told() -> None:
    """A queue's reader, an event, a free semaphore's taker: no request waits in them."""

    async def run() -> dict[str, Any]:
        queue, gate, (watch, clock) = asyncio.Queue[int](), asyncio.Semaphore(0), watched()
        tasks = [asyncio.create_task(queue.get()), asyncio.create_task(gate.acquire())]
        told = await after_looks(watch, clock, 4)
        for task in tasks:
            task.cancel()
        return told

    assert {"lock": 0, "await": 0, "places": []} == asyncio.run(run())


def test_without_an_old_request_nothing_is_looked_at() -> None:
    """Nor is any frame held."""

    async def run() -> tuple[dict[str, Any], dict[Any, Any]]:
        lock, over, (watch, clock) = asyncio.Lock(), asyncio.Event(), watched()
        tasks = [asyncio.create_task(takes(lock, over)) for _ in range(3)]
        await after_looks(watch, clock, 3)
        told = watch.reading(asyncio.get_running_loop(), 0.5)["standing_tasks"]
        over.set()
        await asyncio.gather(*tasks)
        return told, watch._known

    assert ({"lock": 0, "await": 0, "places": []}, {}) == asyncio.run(run())


def test_a_look_that_fails_is_said_at_the_next_reading_and_the_loop_goes_on() -> None:
    """The recorder's guard counts it; the service's loop hears nothing."""

    class Broken(StandingTasks):
        def look(self, loop: asyncio.AbstractEventLoop) -> None:
            raise ValueError(f"a mistake of the probe on {loop!r:.1}")

    async def run() -> str:
        watch, loop, heard = Broken(lambda: 0.0), asyncio.get_running_loop(), []
        loop.set_exception_handler(lambda _loop, context: heard.append(context))
        watch.reading(loop, 9.0)
        await asyncio.sleep(0.02)
        assert [] == heard
        try:
            watch.reading(loop, 9.0)
        except ValueError as error:
            return str(error)
        return ""

    assert asyncio.run(run()).startswith("a mistake of the probe")
