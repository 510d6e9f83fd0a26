"""Retries, bounds and visible loss: nobody waits for a receiver, and nothing is lost in silence."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.notify.delivery import Channel, Delivery, Worker, backoff
from runbooks.notify.message import Message
from runbooks.notify.outcome import Outcome, refused, retry, sent
from tests.runbooks.notify.conftest import message

Ends = list[tuple[str | None, str, str, str]]


def channel(outcomes: Iterator[Outcome]) -> Channel:
    """Return a channel that answers in turn."""
    return Channel("slack", lambda _message: next(outcomes))


def worker(
    outcomes: list[Outcome], pauses: list[float], most_tries: int = 7, stop: bool = False
) -> tuple[Worker, Ends]:
    """Return a worker whose pauses are written down and take no time."""
    ends: Ends = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return stop

    made = Worker(
        channel(iter(outcomes)), lambda *told: ends.append(told), most_waiting=2, most_tries=most_tries, pause=pause
    )
    return made, ends


def until(true: Callable[[], object]) -> bool:
    """Wait, ten seconds at most, and tell whether it came about."""
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(true())


def test_a_message_is_tried_again_with_growing_pauses() -> None:
    """Until it arrives; a receiver's own wish is heard."""
    pauses: list[float] = []
    sender, ends = worker([retry("HTTP 500"), retry("HTTP 429", 30.0), retry("HTTP 500"), sent()], pauses)
    sender.deliver(message())

    assert [("20261130T080300Z-0123abcd", "slack", "sent", "")] == ends
    assert 0.75 <= pauses[0] <= 1.0
    assert 30.0 == pauses[1]
    assert 3.0 <= pauses[2] <= 4.0
    assert 1 == sender.results["sent"]


def test_a_refusal_is_final_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """No further try: counted, logged, and told to the report."""
    pauses: list[float] = []
    sender, ends = worker([refused("HTTP 404: no_service")], pauses)
    with caplog.at_level(logging.WARNING):
        sender.deliver(message())

    assert [("20261130T080300Z-0123abcd", "slack", "refused", "HTTP 404: no_service")] == ends
    assert [] == pauses
    assert "follow-up of report 20261130T080300Z-0123abcd lost: slack, refused: HTTP 404: no_service" in caplog.text


def test_patience_ends() -> None:
    """After the last try the message is lost, visibly, and without a further pause."""
    pauses: list[float] = []
    sender, ends = worker([retry("HTTP 500")] * 3, pauses, most_tries=3)
    sender.deliver(message())

    assert [("gave_up", "3 tries, at last: HTTP 500")] == [end[2:] for end in ends]
    assert 2 == len(pauses)


def test_a_channel_that_breaks_costs_that_message() -> None:
    """A mistake of ours is a loss that is seen, and not the end of the thread."""

    def broken(_message: Message) -> Outcome:
        raise KeyError("secret")

    ends: Ends = []
    Worker(Channel("slack", broken), lambda *told: ends.append(told)).deliver(message())

    assert [("refused", "failed: KeyError")] == [end[2:] for end in ends]


def test_too_many_messages_are_lost_visibly_and_never_block() -> None:
    """A receiver that hangs fills its own queue, and nobody else's."""
    gate = threading.Event()
    ends: Ends = []
    fine: list[Message] = []

    def hang(_message: Message) -> Outcome:
        gate.wait(10)
        return sent()

    def keep(one: Message) -> Outcome:
        fine.append(one)
        return sent()

    delivery = Delivery(
        [Channel("slack", hang), Channel("email", keep)], lambda *told: ends.append(told), most_waiting=2
    )
    delivery.start()
    for _ in range(5):
        delivery.offer(message())
        assert until(lambda: not len(delivery.workers[1]))

    assert until(lambda: 5 == len(fine))
    assert {("slack", "no_room")} == {end[1:3] for end in ends if end[1] == "slack"}
    assert 3 == delivery.workers[0].results["no_room"]
    gate.set()
    delivery.stop()


def test_what_still_waits_at_the_end_is_said() -> None:
    """Neither forgotten nor waited for."""
    gate = threading.Event()
    ends: Ends = []

    def hang(_message: Message) -> Outcome:
        gate.wait(0.3)
        return retry("HTTP 503")

    delivery = Delivery([Channel("slack", hang)], lambda *told: ends.append(told))
    delivery.start()
    delivery.offer(message())
    delivery.offer(message(alert="ServiceDown"))
    assert until(lambda: 2 == len(delivery.workers[0]))
    delivery.stop()

    assert ["stopped", "stopped"] == [end[2] for end in ends]
    assert not delivery.workers[0].offer(message())


@given(st.integers(0, 60), st.floats(0, 1))
def test_pauses_stay_within_a_minute(number: int, chance: float) -> None:
    """And never under three quarters of their doubling."""
    pause = backoff(number, lambda: chance)

    assert 0.75 * min(2.0**number, 60.0) <= pause <= 60.0
