from __future__ import annotations

import threading
from collections.abc import Iterator

from exporters.gpu.reading import Card, Snapshot
from exporters.gpu.sampler import GpuSampler

FINE = Snapshot("ok", "1", (Card("0", "x", "ok", {"temperature": {("gpu_temperature_celsius", ()): 40.0}}),))


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Now."""
        return self.now


def test_before_the_first_look_it_is_starting() -> None:
    """Nobody has looked yet: that is neither a card that works nor one that is lost."""
    assert Snapshot("starting") == GpuSampler(lambda: FINE, clock=Clock()).latest()


def test_a_look_that_hangs_ages_until_the_cards_are_silent() -> None:
    """What was seen last is shown for three looks, and then only that nothing is seen any more."""
    clock = Clock()
    sampler = GpuSampler(lambda: FINE, 5.0, clock)
    sampler.look()

    clock.now += 16.0
    assert FINE == sampler.latest()
    clock.now += 0.1
    assert Snapshot("silent", "", (Card("0", "x", "silent"),)) == sampler.latest()


def test_a_driver_that_hangs_holds_nobody_up() -> None:
    """The look hangs in its thread for ever; who asks has an answer, and stopping comes to an end."""
    clock, entered, never = Clock(), threading.Event(), threading.Event()

    def hang() -> Snapshot:
        entered.set()
        never.wait(30)
        return FINE

    sampler = GpuSampler(hang, 5.0, clock)
    sampler.start()
    assert entered.wait(10)
    clock.now += 20.0

    assert Snapshot("silent") == sampler.latest()
    sampler.stop()
    never.set()


def test_a_look_that_raises_costs_that_look() -> None:
    """A fault of the reader is an error of the cards, until a later look succeeds."""
    looks: Iterator[Snapshot | Exception] = iter([RuntimeError("x"), FINE])

    def read() -> Snapshot:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    sampler = GpuSampler(read, clock=Clock())

    sampler.look()
    assert Snapshot("error") == sampler.latest()
    sampler.look()
    assert FINE == sampler.latest()


def test_a_machine_without_the_library_is_asked_seldom_and_is_not_silent_meanwhile() -> None:
    """Between two of the rare looks the answer stays what it was."""
    clock = Clock()
    sampler = GpuSampler(lambda: Snapshot("library_missing"), 5.0, clock)
    sampler.look()

    clock.now += 100.0

    assert Snapshot("library_missing") == sampler.latest()
