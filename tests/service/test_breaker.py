"""The breaker opens after failures in a row, lets one call try, and closes when that one works."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.breaker import Breaker


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def state(breaker: Breaker) -> str:
    """Return where it stands."""
    return breaker.state


def test_failures_in_a_row_open_it_and_a_success_between_them_does_not() -> None:
    """Only a row of failures counts."""
    breaker = Breaker(3, clock=Clock())
    for _ in range(2):
        breaker.failed()
    breaker.succeeded()
    for _ in range(2):
        breaker.failed()
    assert "closed" == state(breaker)

    breaker.failed()

    assert "open" == state(breaker)
    assert breaker.allow() is False
    assert 1 == breaker.opened


def test_after_its_pause_one_call_alone_may_try() -> None:
    """Half open lets one through; its success closes, and all may call again."""
    clock = Clock()
    breaker = Breaker(1, pause_seconds=1.0, clock=clock)
    breaker.failed()
    clock.now += 1.0

    assert "half_open" == state(breaker)
    assert [True, False, False] == [breaker.allow() for _ in range(3)]
    breaker.succeeded()
    assert "closed" == state(breaker)
    assert [True, True] == [breaker.allow() for _ in range(2)]


def test_a_failed_try_doubles_the_pause_up_to_its_limit() -> None:
    """1, 2, 4, 4 seconds."""
    clock = Clock()
    breaker = Breaker(1, pause_seconds=1.0, longest_seconds=4.0, clock=clock)
    breaker.failed()
    pauses = []
    for _ in range(4):
        began = clock.now
        while not breaker.allow():
            clock.now += 0.5
        pauses.append(clock.now - began)
        breaker.failed()

    assert [1.0, 2.0, 4.0, 4.0] == pauses


def test_a_try_that_never_tells_how_it_went_does_not_shut_the_door_for_ever() -> None:
    """A caller may die between asking and telling."""
    clock = Clock()
    breaker = Breaker(1, pause_seconds=1.0, longest_seconds=5.0, clock=clock)
    breaker.failed()
    clock.now += 1.0
    assert breaker.allow() is True

    clock.now += 5.0

    assert breaker.allow() is True


def test_a_try_that_says_nothing_lets_the_next_one_try() -> None:
    """It neither closes nor doubles the pause, and counts in no row."""
    clock = Clock()
    breaker = Breaker(2, pause_seconds=1.0, clock=clock)
    breaker.failed()
    breaker.released()
    assert "closed" == state(breaker)
    breaker.failed()
    breaker.released()
    assert (False, "open") == (breaker.allow(), state(breaker))
    clock.now += 1.0

    assert [True, False] == [breaker.allow() for _ in range(2)]
    breaker.released()
    assert ("half_open", 1) == (state(breaker), breaker.opened)
    assert [True, False] == [breaker.allow() for _ in range(2)]


def test_a_call_from_before_it_opened_does_not_close_it() -> None:
    """A late success says nothing about now."""
    breaker = Breaker(1, clock=Clock())
    breaker.failed()
    breaker.succeeded()

    assert "open" == state(breaker)


@given(st.lists(st.sampled_from(["call_ok", "call_bad", "call_void", "wait"]), max_size=200))
def test_whatever_happens_it_comes_back_when_calls_work_again(happenings: list[str]) -> None:
    """After any history a pause of the longest kind and one success close it."""
    clock = Clock()
    breaker = Breaker(3, pause_seconds=1.0, longest_seconds=8.0, clock=clock)
    for one in happenings:
        if one == "wait":
            clock.now += 0.7
        elif breaker.allow():
            {"call_ok": breaker.succeeded, "call_bad": breaker.failed, "call_void": breaker.released}[one]()
    clock.now += 8.0

    assert breaker.allow() is True
    breaker.succeeded()
    assert "closed" == state(breaker)
