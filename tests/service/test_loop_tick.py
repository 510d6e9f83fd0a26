"""The age of the event loop's last run."""

from __future__ import annotations

import asyncio

from service.loop_tick import LoopTick


def test_age_grows_without_a_tick_and_falls_with_one() -> None:
    """The age is what has passed since the loop last ran, by the given clock."""
    now = [100.0]
    tick = LoopTick(0.01, lambda: now[0])

    async def scenario() -> tuple[float, float, float]:
        tick.start()
        now[0] = 103.0
        before = tick.age_seconds
        await asyncio.sleep(0.05)
        after = tick.age_seconds
        tick.stop()
        now[0] = 104.0
        await asyncio.sleep(0.05)
        return before, after, tick.age_seconds

    assert asyncio.run(scenario()) == (3.0, 0.0, 1.0)


def test_clock_that_goes_back_gives_no_negative_age() -> None:
    """An age below zero would be nonsense to whoever reads it."""
    now = [5.0]
    tick = LoopTick(1, lambda: now[0])
    now[0] = 4.0
    assert tick.age_seconds == 0.0


def test_stop_before_start_is_no_error() -> None:
    """An app that never started can be stopped."""
    LoopTick().stop()
