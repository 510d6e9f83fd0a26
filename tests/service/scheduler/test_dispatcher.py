"""Requests on their way through queues, threads and batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from service.backend import Answer, BackendError
from service.body_limit import Disconnected
from service.executor import Executor
from service.memory_device import DeviceReading
from service.recorder_link import RecorderLink
from service.recording import NO_RECORD
from service.scheduler.dispatcher import Scheduler, SchedulerRules
from service.scheduler.lanes import Lane, LaneRules
from service.scheduler.memory import MemoryGate
from service.scheduler.ticket import DeadlineExceeded, MemoryShort, Overloaded, RateLimited

MIB = 1 << 20

pytestmark = pytest.mark.anyio


@contextmanager
def running(
    threads: int = 1, batch_size: int = 8, wait_seconds: float = 0.01, gate: MemoryGate | None = None, **rules: Any
) -> Iterator[Scheduler]:
    """Run a scheduler with threads of its own."""
    lanes = LaneRules({"vip": 20, "normal": 20, "long": 20}, batch_size, int(wait_seconds * 1e9))
    everybody, vip = Executor(threads, "test"), Executor(1, "test-vip")
    for executor in (everybody, vip):
        executor.start()
    told = SchedulerRules(lanes, **({"deadline_seconds": 20.0, "long_characters": 50} | rules))
    try:
        yield Scheduler(everybody, vip, told, RecorderLink.batch_stage, gate=gate)
    finally:
        for executor in (everybody, vip):
            executor.close()


def asked(scheduler: Scheduler, backend: Any, text: str, lane: Lane | None = None) -> asyncio.Task[Answer]:
    """Send a text on its way."""
    where = lane or scheduler.lane_of(len(text), vip=False)
    return asyncio.create_task(scheduler.run(backend, scheduler.new_ticket(text, NO_RECORD, where)))


class Counting:
    """Notes the shape of each call, and answers each row with the number of its tokens."""

    def __init__(self, backend: Any) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.backend = backend
        self.forward_before = backend.forward
        backend.forward = self.forward

    def forward(self, ids: Any, mask: Any) -> Any:
        """Answer."""
        self.shapes.append(ids.shape)
        self.forward_before(ids, mask)
        return np.stack([np.full(3, row.sum(), np.float32) for row in mask])


async def test_eight_texts_are_one_padded_call_and_each_gets_its_own_row(fake_backend: Any) -> None:
    """One tensor as wide as the longest; answers are not mixed up."""
    counting = Counting(fake_backend)
    with running(wait_seconds=20) as scheduler:
        answers = await asyncio.gather(*(asked(scheduler, fake_backend, "x" * n) for n in range(1, 9)))
    assert counting.shapes == [(8, 8)]
    assert [answer.logits.tolist() for answer in answers] == [[[float(n)] * 3] for n in range(1, 9)]


async def test_fewer_go_when_their_time_is_up(fake_backend: Any) -> None:
    """Nobody waits for a batch that does not fill."""
    counting = Counting(fake_backend)
    with running(wait_seconds=0.005) as scheduler:
        await asyncio.gather(*(asked(scheduler, fake_backend, "x") for _ in range(3)))
    assert counting.shapes == [(3, 1)]


async def test_vip_and_long_texts_do_not_share_the_others_batch(fake_backend: Any) -> None:
    """A VIP goes alone and at once; a long text pads nobody."""
    counting = Counting(fake_backend)
    with running(threads=2, wait_seconds=0.02) as scheduler:
        texts: list[tuple[str, Lane | None]] = [("a", None), ("b" * 90, None), ("c", None), ("d", "vip")]
        await asyncio.gather(*(asked(scheduler, fake_backend, text, lane) for text, lane in texts))
    assert counting.shapes[0] == (1, 1)
    assert sorted(counting.shapes) == [(1, 1), (1, 90), (2, 1)]


async def test_vip_is_answered_while_the_model_hangs_for_the_others(fake_backend: Any, until: Any) -> None:
    """VIPs have a thread of their own, so that a full house does not keep them."""
    with running(wait_seconds=0.001, batch_size=1) as scheduler:
        fake_backend.gate.clear()
        others = [asked(scheduler, fake_backend, "x") for _ in range(5)]
        await until(lambda: fake_backend.forwards == 1)
        vip = asked(scheduler, fake_backend, "y", "vip")
        await until(lambda: fake_backend.forwards == 2)
        fake_backend.gate.set()
        await asyncio.gather(vip, *others)


async def test_long_texts_leave_a_thread_to_the_short_ones(fake_backend: Any, until: Any) -> None:
    """Of two threads one may be held by long texts."""
    with running(threads=2, wait_seconds=0, batch_size=1) as scheduler:
        fake_backend.gate.clear()
        long = [asked(scheduler, fake_backend, "x" * 60) for _ in range(4)]
        await until(lambda: fake_backend.forwards == 1)
        await asyncio.sleep(0.02)
        assert fake_backend.forwards == 1
        short = asked(scheduler, fake_backend, "y")
        await until(lambda: fake_backend.forwards == 2)
        fake_backend.gate.set()
        await asyncio.gather(short, *long)


async def test_one_bad_row_costs_one_answer(fake_backend: Any) -> None:
    """Where a batch fails its requests are sent one by one."""
    forward = fake_backend.forward

    def picky(ids: Any, mask: Any) -> Any:
        if (ids == ord("!")).any():
            raise BackendError("bad row")
        return forward(ids, mask)

    fake_backend.forward = picky
    with running(wait_seconds=20) as scheduler:
        tasks = [asked(scheduler, fake_backend, text) for text in "abc!defg"]
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Answer] * 3 + [BackendError] + [Answer] * 4


async def test_deadline_in_the_queue_leaves_no_work_behind(fake_backend: Any, until: Any) -> None:
    """What was late before its turn is never tokenized."""
    with running(wait_seconds=0, batch_size=1, deadline_seconds=0.3) as scheduler:
        fake_backend.gate.clear()
        tasks = [asked(scheduler, fake_backend, text) for text in "abc"]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} == {DeadlineExceeded}
        assert scheduler.lanes.waiting == 0
        fake_backend.gate.set()
        await asked(scheduler, fake_backend, "d")
    assert fake_backend.texts == ["a", "d"]


async def test_cancelled_caller_leaves_its_queue(fake_backend: Any, until: Any) -> None:
    """A task that is cancelled while it waits is not worked for."""
    with running(wait_seconds=0, batch_size=1) as scheduler:
        fake_backend.gate.clear()
        first = asked(scheduler, fake_backend, "a")
        await until(lambda: fake_backend.forwards == 1)
        second = asked(scheduler, fake_backend, "b")
        await until(lambda: scheduler.lanes.waiting == 1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert scheduler.lanes.waiting == 0
        fake_backend.gate.set()
        await first
    assert fake_backend.texts == ["a"]


async def test_broken_connection_counts_as_a_client_that_left(fake_backend: Any) -> None:
    """A server that cannot say whether the client is there does not leave the request waiting."""

    async def receive() -> Any:
        raise OSError("broken")

    with running(wait_seconds=20) as scheduler:
        ticket = scheduler.new_ticket("a", NO_RECORD, "normal")
        with pytest.raises(Disconnected):
            await asyncio.wait_for(scheduler.run(fake_backend, ticket, receive), 5)


async def test_no_batch_is_sent_to_a_device_without_room(fake_backend: Any) -> None:
    """The batch waits until there is room, in halves if that is what fits."""
    gate, room = measured_gate()
    counting = Counting(fake_backend)
    with running(wait_seconds=0.001, gate=gate) as scheduler:
        tasks = [asked(scheduler, fake_backend, "x") for _ in range(8)]
        await asyncio.sleep(0.05)
        assert counting.shapes == []
        room.append(5 * MIB)
        await asyncio.gather(*tasks)
        assert scheduler.gate.allows(4)
    assert counting.shapes == [(4, 1), (4, 1)]


async def test_text_that_does_not_fit_alone_is_told_and_holds_nobody_up(fake_backend: Any) -> None:
    """After a quarter of the deadline there is no memory for it; a shorter one behind it is answered."""
    gate, room = measured_gate()
    room.append(2 * MIB)
    with running(wait_seconds=0.001, gate=gate, deadline_seconds=1.0) as scheduler:
        long = asked(scheduler, fake_backend, "x" * 100)
        short = asked(scheduler, fake_backend, "x")
        with pytest.raises(MemoryShort):
            await asyncio.wait_for(long, 20)
        await asyncio.wait_for(short, 20)
        assert scheduler.lanes.waiting == 0


def measured_gate() -> tuple[MemoryGate, list[int]]:
    """Return a gate that has seen 1 MiB taken for each cell, and the list whose last entry is what is free."""
    room = [MIB]
    gate = MemoryGate(lambda: DeviceReading(room[-1], 0))
    gate.observe(DeviceReading(0, 0))
    gate.begin(4096)
    gate.observe(DeviceReading(0, 4096 * MIB))
    gate.end(4096)
    gate.observe(DeviceReading(0, 0))
    return gate, room


async def test_full_queue_says_when_to_come_back(fake_backend: Any, until: Any) -> None:
    """At least a second, and no longer than half a minute."""
    with running(wait_seconds=0, batch_size=1) as scheduler:
        fake_backend.gate.clear()
        tasks = [asked(scheduler, fake_backend, "x") for _ in range(22)]
        with pytest.raises(Overloaded) as told:
            await tasks[21]
        fake_backend.gate.set()
        await asyncio.gather(*tasks[:21])
    assert 1 <= told.value.retry_seconds <= 30


async def test_rate_counts_vips_and_holds_back_the_others(fake_backend: Any) -> None:
    """What VIPs take the others miss, but for what is kept for them."""
    with running(wait_seconds=0, batch_size=1, rate=2.0) as scheduler:
        for _ in range(3):
            await asked(scheduler, fake_backend, "x", "vip")
        await asked(scheduler, fake_backend, "x")
        with pytest.raises(RateLimited):
            await asked(scheduler, fake_backend, "x")
