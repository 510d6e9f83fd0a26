"""When the service is degraded, and when no longer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from service.backend import Calls
from service.degradation.rules import REASONS, Degradation, DegradationRules
from service.memory_device import Absent, DeviceReading

ALL_LATER: Mapping[str, str] = dict.fromkeys(REASONS, "later")


class Time:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Triton:
    """A backend whose breaker a test sets."""

    breaker = "closed"

    def snapshot(self) -> Calls:
        """Return how calls went."""
        return Calls(self.breaker, 0, {})


def degradation(clock: Time, answers: Mapping[str, str] = ALL_LATER) -> Degradation:
    """Return what is tested."""
    return Degradation(DegradationRules(answers), clock)  # type: ignore[arg-type]  # words of the closed set


def feed(found: Degradation, clock: Time, busy: float | None, seconds: float) -> None:
    """Show a GPU's utilisation once a second."""
    for _ in range(int(seconds)):
        found.observe(DeviceReading(1, 1, busy) if busy is not None else Absent("no driver"))
        clock.now += 1


def test_gpu_over_95_percent_for_30_seconds_degrades_and_recovers_by_itself() -> None:
    """29 s are not enough, a short dip begins anew, and 5 s below end it; both turns are counted."""
    clock = Time()
    found = degradation(clock)
    feed(found, clock, 0.97, 29)
    assert found.reason(object()) is None
    feed(found, clock, 0.5, 1)
    feed(found, clock, 0.97, 30)
    assert found.reason(object()) is None
    feed(found, clock, 0.97, 1)
    assert found.reason(object()) == "gpu_saturated"
    feed(found, clock, 0.95, 5)
    assert found.reason(object()) == "gpu_saturated"
    feed(found, clock, 0.95, 1)
    assert found.reason(object()) is None
    state = found.state(object())
    assert (state.entered["gpu_saturated"], state.left["gpu_saturated"]) == (1, 1)


@pytest.mark.parametrize("busy", [None, 0.95])
def test_no_gpu_and_one_that_is_just_full_never_degrade(busy: float | None) -> None:
    """Absence is not saturation, and 95% is not above 95%."""
    clock = Time()
    found = degradation(clock)
    feed(found, clock, busy, 300)
    assert found.reason(object()) is None


def test_gpu_that_is_lost_while_saturated_is_saturated_no_longer() -> None:
    """Nobody knows it, so nothing is decided by it."""
    clock = Time()
    found = degradation(clock)
    feed(found, clock, 1.0, 40)
    assert found.reason(object()) == "gpu_saturated"
    feed(found, clock, None, 1)
    assert found.reason(object()) is None


def test_open_breaker_is_triton_down_and_a_probing_one_is_not() -> None:
    """Half open lets a request through to find out; closed is the recovery."""
    found, triton = degradation(Time()), Triton()
    assert found.reason(triton) is None
    triton.breaker = "open"
    assert found.reason(triton) == "triton_down"
    triton.breaker = "half_open"
    assert found.reason(triton) is None
    assert (found.state(triton).entered["triton_down"], found.state(triton).left["triton_down"]) == (1, 1)


def test_reason_that_is_off_changes_nothing_but_is_told() -> None:
    """The settings decide about answers, not about what metrics show."""
    found, triton = degradation(Time(), {**ALL_LATER, "triton_down": "off"}), Triton()
    triton.breaker = "open"
    assert found.reason(triton) is None
    assert found.state(triton).active["triton_down"]


def test_full_queue_is_told_for_five_seconds() -> None:
    """Once for all requests of one spell."""
    clock = Time()
    found = degradation(clock)
    for _ in range(10):
        found.queue_was_full()
        clock.now += 0.5
    assert found.state(None).active["queue_full"]
    clock.now += 5
    state = found.state(None)
    assert not state.active["queue_full"]
    assert (state.entered["queue_full"], state.left["queue_full"]) == (1, 1)
