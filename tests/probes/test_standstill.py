"""Threads that do not move while a request does not end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from probes.open_slots import OPEN_DTYPE, oldest_age_s
from probes.standstill import Standstill


def looked_at(target: Callable[[], None], clock: list[float]) -> dict[str, Any]:
    """Return the second of two readings, six seconds apart by the clock, of one thread that runs *target*."""

    def call() -> None:
        target()

    thread = threading.Thread(target=call, name="looked-at", daemon=True)
    thread.start()
    time.sleep(0.3)
    watch = Standstill(clock=lambda: clock[0], names=lambda: {thread.ident or 0: thread.name})
    watch.reading(9.0)
    time.sleep(0.05)
    clock[0] += 6.0
    standing: dict[str, Any] = watch.reading(15.0)["standing"]
    return standing


def mine(standing: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the places of the thread that was started for the test."""
    return [one for one in standing["places"] if "looked-at" == one["name"]]


@contextmanager
def held(lock: Any) -> Any:
    """Hold a lock while the test looks, then let the thread go."""
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
@pytest.mark.parametrize("how", ["with", "acquire"])
def test_a_thread_that_waits_for_a_lock_is_told_with_its_line(make: Callable[[], Any], how: str) -> None:
    """Entered by `with` or by `acquire`; the values of its variables are not told."""
    lock = make()

    def entering() -> None:
        secret = "a customer's text"
        with lock:
            assert secret

    def acquiring() -> None:
        lock.acquire()
        lock.release()

    with held(lock):
        standing = looked_at(entering if how == "with" else acquiring, [0.0])
    [place] = mine(standing)

    assert ("lock", 6.0, 1) == (place["waits"], place["still_s"], place["threads"])
    assert "test_standstill.py:" in place["stack"][0]
    assert "customer" not in str(standing)


def test_a_thread_in_a_call_waits_for_no_lock() -> None:
    """A sleep stands for a server that does not answer."""
    [place] = mine(looked_at(lambda: time.sleep(3), [0.0]))

    assert "call" == place["waits"]


def test_a_thread_that_moves_and_one_that_waits_for_work_are_not_told() -> None:
    """The first is at another instruction at each look; the second is in the function that it was made for."""
    done = threading.Event()
    waiting = threading.Thread(target=done.wait, name="looked-at", daemon=True)
    waiting.start()
    turns = iter(range(10**9))

    def moving() -> None:
        while not done.is_set():
            short(next(turns))

    def short(turn: int) -> None:
        time.sleep(0.001 + turn % 2 * 0.001)

    found = mine(looked_at(moving, [0.0]))
    done.set()

    assert [] == found


def test_without_an_old_request_nothing_is_looked_at() -> None:
    """No request, or one that is young: no stack is taken, and what was known is forgotten."""
    looks = []

    def frames() -> dict[int, Any]:
        looks.append(1)
        return {}

    watch = Standstill(frames=frames, clock=lambda: 0.0)
    nothing = {"standing": {"lock": 0, "call": 0, "places": []}}

    assert [nothing, nothing] == [watch.reading(None), watch.reading(4.9)]
    assert [] == looks
    watch.reading(5.0)
    assert [1] == looks


def test_the_oldest_of_the_busy_slots_counts() -> None:
    """Free slots keep old times; a clock that was set back makes no negative age."""
    table = np.zeros(4, OPEN_DTYPE)
    assert oldest_age_s(table.tobytes(), 10**9) is None
    table["state"][1:3] = 1
    table["start_unix_ns"] = [1, 3 * 10**9, 5 * 10**9, 2]

    assert 4.0 == oldest_age_s(table.tobytes(), 7 * 10**9)
    assert 0.0 == oldest_age_s(table.tobytes(), 10**9)
