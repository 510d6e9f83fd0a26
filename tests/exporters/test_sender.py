from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable

import pytest

from exporters.sender import Answer, Parcel, Sender

RESOURCE = b"\x0a\x00"


class FakeTransport:
    """Answers as a function of the body and the number of the call says."""

    def __init__(self, answer: Callable[[bytes, int], Answer]) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []
        self.closed = False

    def post(self, body: bytes, *, compressed: bool) -> Answer:  # noqa: ARG002 - the contract's
        """Return the planned answer."""
        self.bodies.append(body)
        return self.answer(body, len(self.bodies))

    def close(self) -> None:
        """Remember it."""
        self.closed = True


def parcel(number: int, spans: int = 7) -> Parcel:
    """A request's spans; the number is in its body."""
    return Parcel(RESOURCE, b"\x12\x04no%02d" % number, spans, mark=number)


def send(
    transport: FakeTransport,
    parcels: list[Parcel],
    *,
    stop_after: float = 5.0,
    until_empty: bool = True,
    **options: float,
) -> Sender:
    """Send parcels until the queue is empty, then stop."""
    sender = Sender(transport, version="1", first_pause_seconds=0.01, **options)  # type: ignore[arg-type]
    for one in parcels:
        sender.put(one)
    sender.start()
    deadline = time.monotonic() + 10
    while until_empty and sender.queued and time.monotonic() < deadline:
        time.sleep(0.005)
    sender.stop(stop_after)
    return sender


def test_what_is_put_is_delivered_once_and_marked() -> None:
    """Accepted spans are counted as sent and their requests may be pointed at."""
    transport = FakeTransport(lambda _body, _call: Answer(200))
    sender = send(transport, [parcel(number) for number in range(10)])
    assert sender.take_counts().value("telemetry_spans_sent_total") == 70
    assert sorted(map(str, sender.take_delivered())) == sorted(map(str, range(10)))
    assert all(sum(b"no%02d" % number in body for body in transport.bodies) == 1 for number in range(10))
    assert transport.closed


def test_batches_are_bounded() -> None:
    """A body holds about `batch_spans` spans, and at least one request."""
    transport = FakeTransport(lambda _body, _call: Answer(200))
    send(transport, [parcel(number) for number in range(9)], batch_spans=21)
    assert [body.count(b"no") for body in transport.bodies] == [3, 3, 3]
    transport = FakeTransport(lambda _body, _call: Answer(200))
    send(transport, [parcel(1, spans=500)], batch_spans=21)
    assert len(transport.bodies) == 1


@pytest.mark.parametrize("status", [0, 429, 502, 503, 504])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    """A target that comes back gets everything; nothing is counted as dropped."""
    transport = FakeTransport(lambda _body, call: Answer(status if call <= 3 else 200))
    sender = send(transport, [parcel(1)])
    counts = sender.take_counts()
    assert counts.value("telemetry_spans_sent_total") == 7
    assert not counts.counters.get("telemetry_spans_dropped_total")
    assert len(transport.bodies) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_a_final_refusal_is_not_repeated(status: int) -> None:
    """The OTLP specification names what may be tried again; a 500 is not among it."""
    transport = FakeTransport(lambda _body, _call: Answer(status))
    sender = send(transport, [parcel(1)])
    assert sender.take_counts().value("telemetry_spans_dropped_total", "rejected") == 7
    assert len(transport.bodies) == 1
    assert sender.take_delivered() == []


def test_a_body_that_is_too_large_is_halved() -> None:
    """413: smaller bodies are tried until only a request that is too large by itself is left."""
    transport = FakeTransport(lambda body, _call: Answer(413 if body.count(b"no") > 2 or b"no03" in body else 200))
    sender = send(transport, [parcel(number) for number in range(8)])
    counts = sender.take_counts()
    assert counts.value("telemetry_spans_dropped_total", "too_large") == 7
    assert counts.value("telemetry_spans_sent_total") == 49


def test_a_dead_target_costs_a_bounded_queue() -> None:
    """Spans over the queue's bound are dropped and counted at once, by a `put` that does not wait."""
    release = threading.Event()

    def hang(_body: bytes, _call: int) -> Answer:
        release.wait(10)
        return Answer(0)

    sender = Sender(FakeTransport(hang), version="1", queue_spans=70)
    sender.start()
    for number in range(100):
        sender.put(parcel(number))
    assert sender.queued == 70
    assert sender.take_counts().value("telemetry_spans_dropped_total", "queue_full") == 630
    release.set()
    sender.stop(0.1)


def test_spans_are_given_up_after_the_deadline() -> None:
    """A target that stays down costs each span once: it is dropped by reason, and the next ones are tried."""
    transport = FakeTransport(lambda _body, _call: Answer(0))
    sender = send(transport, [parcel(1), parcel(2)], deadline_seconds=0.1)
    assert sender.take_counts().value("telemetry_spans_dropped_total", "deadline") == 14


def test_a_partial_success_counts_what_was_refused() -> None:
    """Rejected spans of an accepted body are dropped, and none of its requests is pointed at."""
    sender = send(FakeTransport(lambda _body, _call: Answer(200, rejected_spans=3)), [parcel(1)])
    counts = sender.take_counts()
    assert counts.value("telemetry_spans_sent_total") == 4
    assert counts.value("telemetry_spans_dropped_total", "rejected") == 3
    assert sender.take_delivered() == []


def test_retry_after_is_honoured() -> None:
    """A wait that the target asks for and that outlives the deadline is not waited for."""
    transport = FakeTransport(lambda _body, _call: Answer(429, retry_after_seconds=3600))
    sender = send(transport, [parcel(1)], deadline_seconds=1)
    assert sender.take_counts().value("telemetry_spans_dropped_total", "deadline") == 7
    assert len(transport.bodies) == 1


def test_what_is_left_at_exit_is_counted() -> None:
    """Stopping takes a bounded time, and what was not delivered is a figure."""
    sender = send(FakeTransport(lambda _body, _call: Answer(503)), [parcel(1)], stop_after=0.1, until_empty=False)
    assert sender.take_counts().value("telemetry_spans_dropped_total", "not_delivered_at_exit") == 7
    sender.put(parcel(2))
    assert sender.take_counts().value("telemetry_spans_dropped_total", "queue_full") == 7


def test_bodies_can_be_compressed() -> None:
    """With compression on, what is posted unpacks to the very same spans."""
    transport = FakeTransport(lambda _body, _call: Answer(200))
    send(transport, [parcel(1)], compress=True)
    plain = FakeTransport(lambda _body, _call: Answer(200))
    send(plain, [parcel(1)])
    assert plain.bodies == [gzip.decompress(body) for body in transport.bodies]


def test_a_batch_that_raises_costs_itself_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours amid a halved batch: its spans are counted once, the next ones go, the thread lives."""

    def answer(body: bytes, _call: int) -> Answer:
        if body.count(b"no") > 1:
            return Answer(413)
        if b"no02" in body or b"no03" in body:
            raise RuntimeError("by hand")
        return Answer(200)

    sender = Sender(FakeTransport(answer), version="1", first_pause_seconds=0.01)
    for number in range(1, 7):
        sender.put(parcel(number))
    sender.start()
    deadline = time.monotonic() + 10
    while sender.queued and time.monotonic() < deadline:
        time.sleep(0.005)
    counts, left, alive = sender.take_counts(), sender.queued, sender.alive
    sender.stop()

    assert (28, 14, 0, True) == (
        counts.value("telemetry_spans_sent_total"),
        counts.value("telemetry_spans_dropped_total", "failed"),
        left,
        alive,
    )
    assert 1 == caplog.text.count("spans not sent (RuntimeError: by hand)")
    assert not sender.alive


def test_the_age_of_what_waits_is_told_whether_it_waits_or_is_under_way() -> None:
    """A dead target is seen by it long before anything is dropped."""
    now = [100.0]
    sender = Sender(FakeTransport(lambda _body, _call: Answer(200)), version="0", clock=lambda: now[0])
    assert 0.0 == sender.waiting_seconds

    sender.put(parcel(1))
    now[0] += 7.0
    sender.put(parcel(2))
    assert 7.0 == sender.waiting_seconds

    sender._next_batch()
    now[0] += 3.0
    assert (10.0, 14) == (sender.waiting_seconds, sender.queued)
