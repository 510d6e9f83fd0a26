"""Slow look-ups take all threads of the executor; the twin's burst drains."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import threading
from pathlib import Path
from typing import Any


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("thread_pool_exhausted.py")
    spec = importlib.util.spec_from_file_location("thread_pool_exhausted_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def looked_up(hook: str, requests: int, armed: bool = True) -> list[float]:
    """Return how long each look-up would take, in the order of the requests; none of them sleeps here."""
    program = load()
    seconds: list[float] = []
    lock = threading.Lock()

    def look_up(one: float) -> None:
        with lock:
            seconds.append(one)

    program.look_up = look_up
    calls: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["type"])

    options = {"rng": random.Random(1)} if hook == "wrap" else {}
    served = getattr(program, hook)(app, lambda: armed, **options)

    async def main() -> None:
        for _ in range(requests):
            await served({"type": "http"}, None, None)

    asyncio.run(main())
    assert ["http"] * requests == calls
    return seconds


def test_more_slow_calls_come_than_the_threads_can_serve() -> None:
    """At the drill's 20 requests a second; and the quick ones need a thread too."""
    program, seconds = load(), looked_up("wrap", 400)

    assert 400 == len(seconds)
    assert 20 * sum(seconds) / len(seconds) > program.THREADS
    assert 0.0 == min(seconds)


def test_the_twins_slow_calls_are_as_many_as_there_are_threads_and_then_none() -> None:
    """A burst that is over after one turn."""
    program, seconds = load(), looked_up("twin_wrap", 100)

    assert [program.SLOW_SECONDS] * program.THREADS + [0.0] * (100 - program.THREADS) == seconds


def test_disarmed_nothing_is_looked_up() -> None:
    """The app alone is called."""
    assert [] == looked_up("wrap", 3, armed=False)
