"""The program holds up the loop when armed, and its twin does not."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import time
from pathlib import Path
from typing import Any

import pytest


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("event_loop_blocked.py")
    spec = importlib.util.spec_from_file_location("event_loop_blocked_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Always(random.Random):
    """Draws 0: every request is hit."""

    def random(self) -> float:
        """Return 0."""
        return 0.0


def seconds_lost(hook: str, *, armed: bool) -> float:
    """Return for how long other work on the loop stood still while one request went through."""
    program = load()
    calls: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        calls.append(scope["type"])

    async def scenario() -> float:
        wrapped = getattr(program, hook)(app, lambda: armed, Always())
        gaps = [0.0]

        async def tick() -> None:
            last = time.perf_counter()
            while True:
                await asyncio.sleep(0.001)
                now = time.perf_counter()
                gaps.append(now - last)
                last = now

        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.01)
        await wrapped({"type": "http"}, None, None)
        await asyncio.sleep(0.01)
        ticking.cancel()
        return max(gaps)

    lost = asyncio.run(scenario())
    assert ["http"] == calls
    return lost


def test_armed_it_blocks_the_loop_for_its_pause() -> None:
    """Nothing else runs for 200 ms."""
    assert seconds_lost("wrap", armed=True) >= 0.2


@pytest.mark.parametrize(("hook", "armed"), [("wrap", False), ("twin_wrap", True)])
def test_disarmed_and_twin_leave_the_loop_free(hook: str, armed: bool) -> None:
    """The loop goes on while the twin waits; half the pause is far more than noise."""
    assert seconds_lost(hook, armed=armed) < 0.1


def test_other_protocols_pass_untouched() -> None:
    """Lifespan messages are no requests."""
    program = load()
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        seen.append(scope["type"])

    started = time.perf_counter()
    asyncio.run(program.wrap(app, lambda: True, Always())({"type": "lifespan"}, None, None))

    assert ["lifespan"] == seen
    assert time.perf_counter() - started < 0.2
