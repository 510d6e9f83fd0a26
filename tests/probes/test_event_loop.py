from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from probes.event_loop import EventLoopWatch, format_stack


def the_culprit(seconds: float) -> None:
    """Block the event loop."""
    secret = "a customer's text"
    time.sleep(seconds)
    assert secret


async def watched(watch: EventLoopWatch, block_s: float) -> dict[str, Any]:
    """Run a loop that is blocked once, with a thread that checks as the heartbeat does."""
    watch.start(asyncio.get_running_loop())
    done = threading.Event()

    def check() -> None:
        while not done.wait(0.01):
            watch.check()

    thread = threading.Thread(target=check)
    thread.start()
    try:
        await asyncio.sleep(0.05)
        the_culprit(block_s)
        await asyncio.sleep(0.1)
        return watch.reading()
    finally:
        done.set()
        thread.join()
        watch.stop()


def test_a_blocked_loop_is_timed_and_its_stack_names_the_culprit() -> None:
    """Innermost first, by file, line and function; no local variable."""
    reading = asyncio.run(watched(EventLoopWatch(tick_s=0.01), 0.3))
    [episode] = reading["blocked"]

    assert 0.25 < reading["loop_blocked_s"] < 5
    assert "the_culprit" in episode["stack"][0]
    assert "test_event_loop.py:" in episode["stack"][0]
    assert "watched" in episode["stack"][1]
    assert "customer" not in str(reading)


def test_a_block_barely_over_the_limit_leaves_its_stack() -> None:
    """The first stack is taken when the tick is late by 0.4 of the limit, so a block of 1.2 limits is not missed."""
    reading = asyncio.run(watched(EventLoopWatch(tick_s=0.01, blocked_s=0.5, beat_s=0.01), 0.6))
    [episode] = reading["blocked"]

    assert "the_culprit" in episode["stack"][0]
    # asleep, not computing, and watched all the while
    assert episode["cpu_ns"] < 0.5 * episode["duration_ns"]
    assert episode["thread_late_ns"] < 0.5 * episode["duration_ns"]


def test_a_stack_taken_when_the_block_was_over_is_not_kept() -> None:
    """Found right before the tick came, it may show the loop after the block; and nobody watched meanwhile."""

    async def main() -> dict[str, Any]:
        watch = EventLoopWatch(tick_s=0.0, blocked_s=0.2, beat_s=0.01)
        watch.start(asyncio.get_running_loop())
        watch.check()
        await asyncio.sleep(0.001)
        the_culprit(0.3)
        thread = threading.Thread(target=watch.check)
        thread.start()
        thread.join()
        await asyncio.sleep(0.001)
        reading = watch.reading()
        watch.stop()
        return reading

    [episode] = asyncio.run(main())["blocked"]

    assert [] == episode["stack"]
    assert episode["thread_late_ns"] > 0.8 * episode["duration_ns"]


def test_a_lag_costs_two_stacks_at_most() -> None:
    """However often it is checked."""

    async def main() -> int:
        watch = EventLoopWatch(tick_s=0.0, blocked_s=0.01)
        watch.start(asyncio.get_running_loop())
        the_culprit(0.05)
        for _ in range(10):
            watch.check()
        taken = len(watch._caught)
        watch.stop()
        return taken

    assert 2 == asyncio.run(main())


def test_an_awaiting_loop_is_not_blocked() -> None:
    """One slow but awaiting request is no block: the healthy twin."""

    async def main() -> dict[str, Any]:
        watch = EventLoopWatch(tick_s=0.01, blocked_s=5.0)
        watch.start(asyncio.get_running_loop())
        await asyncio.sleep(0.3)
        watch.check()
        reading = watch.reading()
        watch.stop()
        return reading

    reading = asyncio.run(main())

    assert ([], 0.0) == (reading["blocked"], reading["loop_blocked_s"])
    assert sum(reading["loop_lag"]["counts"]) > 3


def test_a_block_that_goes_on_is_told_while_it_lasts() -> None:
    """A loop that never comes back shows its age and the stack it hangs in."""

    async def main() -> dict[str, Any]:
        watch = EventLoopWatch(tick_s=0.01)
        watch.start(asyncio.get_running_loop())
        await asyncio.sleep(0.03)
        readings: list[dict[str, Any]] = []

        def look() -> None:
            time.sleep(0.2)
            watch.check()
            readings.append(watch.reading())

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        watch.stop()
        return readings[0]

    reading = asyncio.run(main())

    assert reading["loop_tick_age_s"] > 0.15
    assert "join" in " ".join(reading["blocked"][-1]["stack"])


def test_only_the_last_episodes_are_kept() -> None:
    """32 of them, however many there were; their time stays counted."""

    async def main() -> dict[str, Any]:
        watch = EventLoopWatch(tick_s=0.0, blocked_s=0.001)
        watch.start(asyncio.get_running_loop())
        for _ in range(40):
            await asyncio.sleep(0.0)
            the_culprit(0.003)
            await asyncio.sleep(0.001)
        reading = watch.reading()
        watch.stop()
        return reading

    reading = asyncio.run(main())

    assert 32 == len(reading["blocked"])
    assert reading["loop_blocked_s"] > 40 * 0.002


def test_without_a_running_loop_the_age_is_unknown() -> None:
    """Never started, or its loop has ended: None, not 0 and not an alarm."""
    watch = EventLoopWatch()
    asyncio.run(asyncio.sleep(0))
    before = watch.reading()["loop_tick_age_s"]

    async def main() -> None:
        watch.start(asyncio.get_running_loop())

    asyncio.run(main())
    watch.check()
    after = watch.reading()["loop_tick_age_s"]

    assert (None, None) == (before, after)


def test_a_loop_that_ended_gives_way_to_the_next() -> None:
    """Apps that run several loops one after the other are watched on the last."""
    watch = EventLoopWatch(tick_s=0.001)

    async def main() -> int:
        watch.start(asyncio.get_running_loop())
        before = sum(watch.reading()["loop_lag"]["counts"])
        await asyncio.sleep(0.05)
        return int(sum(watch.reading()["loop_lag"]["counts"]) - before)

    ticks = [asyncio.run(main()) for _ in range(2)]
    watch.stop()

    assert min(ticks) > 0


def test_a_stack_is_bounded() -> None:
    """12 frames of 200 characters, whatever the recursion."""

    def deep(level: int) -> list[str]:
        return deep(level - 1) if level else format_stack(sys._getframe())

    stack = deep(50)

    assert 12 == len(stack)
    assert max(len(line) for line in stack) <= 200
    assert stack[0].endswith("deep")


STOPPED = """
import asyncio, json, sys
from probes.event_loop import EventLoopWatch
from probes.heartbeat import Heartbeat

async def main():
    watch = EventLoopWatch()
    watch.start(asyncio.get_running_loop())
    heartbeat = Heartbeat(0.025, watch.check)
    heartbeat.start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.sleep(0.1)
    heartbeat.stop()
    print(json.dumps(watch.reading()["blocked"]))

asyncio.run(main())
"""


def test_a_machine_that_stands_still_leaves_no_stack_and_a_late_thread() -> None:
    """A stopped process computes nothing and watches nothing: that, and not the missing stack, tells it apart."""
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate("\n", timeout=30)

    longest = max(json.loads(out), key=lambda one: one["duration_ns"])
    assert longest["thread_late_ns"] > 0.5 * longest["duration_ns"]
    assert longest["cpu_ns"] < 0.5 * longest["duration_ns"]
    assert [] == longest["stack"]
