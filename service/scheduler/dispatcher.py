"""The scheduler: takes requests into their queues and hands batches to threads; all of it in the event loop.

Since only the loop's thread touches it there is no lock. A batch goes to a thread as soon as a queue is ripe and a
thread is free; VIPs have a thread of their own beside, so that a model that hangs for others is not their queue. What
is late, or whose client left, is taken out of its queue; once it runs its result is abandoned.

Memory: the places of the queues, and a batch for each thread and each place ahead of it.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.backend import Answer, Backend
from service.executor import Executor
from service.recording import RequestRecord
from service.scheduler.batch_call import BatchCall, BatchStage, Result
from service.scheduler.bucket import SharedLimit
from service.scheduler.lanes import LANES, Lane, LaneRules, Lanes
from service.scheduler.memory import MemoryGate
from service.scheduler.patience import Patience, Receive
from service.scheduler.ticket import MemoryShort, Overloaded, RateLimited, Ticket

__all__ = ["Scheduler", "SchedulerRules"]

MEMORY_SCAN_SECONDS: Final = 0.005
"""Between two looks at a device that has no room; requirements B4 (scan 5 ms)."""
_MEMORY_PATIENCE: Final = 0.25
"""Share of the deadline that a text which does not even fit alone waits for memory."""
_RETRY_MOST_SECONDS: Final = 30.0
_SMOOTHING: Final = 0.1
_AHEAD_MOST: Final = 16


@dataclass(frozen=True)
class SchedulerRules:
    """What can be set.

    Attributes:
        lanes: Bounds of the queues and of a batch.
        deadline_seconds: Most time from a request's coming to its answer.
        long_characters: Texts with more characters wait in a queue of their own; 0: none does.
        ahead_seconds: Work that may wait in front of each busy thread, so that it need not ask the loop for each
            request; at the pace of late. 0: none, a batch is better filled meanwhile.
        rate: Requests a second that are let in; 0: all.
    """

    lanes: LaneRules
    deadline_seconds: float
    long_characters: int = 0
    ahead_seconds: float = 0.0
    rate: float = 0.0


class Scheduler:
    """Decides who is answered when.

    Args:
        executor: Threads for everybody.
        vip_executor: The thread that only VIPs use.
        rules: The settings.
        batch_stage: Enters a stage of many rows.
        gate: Knows whether a device has room for a batch.
        clock: Nanoseconds.
    """

    def __init__(
        self,
        executor: Executor,
        vip_executor: Executor,
        rules: SchedulerRules,
        batch_stage: BatchStage,
        *,
        gate: MemoryGate | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.lanes: Lanes[Ticket] = Lanes(rules.lanes)
        self._executor = executor
        self._vip_executor = vip_executor
        self._rules = rules
        self.batch_stage = batch_stage
        self.gate = gate or MemoryGate()
        self.clock = clock
        self._deadline_ns = int(rules.deadline_seconds * 1e9)
        self._limit = SharedLimit(rules.rate, clock() / 1e9)
        # Before any pace is known one batch may wait ahead of each thread.
        self._slots = executor.threads * (1 + (rules.ahead_seconds > 0))
        # One thread is left to the others, if there are two.
        self._long_slots = max(1, executor.threads - 1)
        self._busy = 0
        self._long_busy = 0
        self._vip_busy = False
        self.numbers = itertools.count(1)
        self._row_seconds = 0.0
        self._backend: Backend | None = None
        self._wakeup: asyncio.TimerHandle | None = None

    def lane_of(self, characters: int, *, vip: bool) -> Lane:
        """Return the queue of a text."""
        if vip:
            return "vip"
        return "long" if 0 < self._rules.long_characters < characters else "normal"

    def admit(self, ticket: Ticket) -> None:
        """Let a request in by its rate; for one that is then run elsewhere, or here as admitted.

        Raises:
            RateLimited: If there are more a second than may be; VIPs count, and are not held back, and leave a tenth.
        """
        if wait := self._limit.take(ticket.entered_ns / 1e9, vip=ticket.lane == "vip"):
            raise RateLimited(wait)

    async def run(
        self, backend: Backend, ticket: Ticket, receive: Receive | None = None, *, admitted: bool = False
    ) -> Answer:
        """Wait for a request's turn and for its answer.

        Args:
            backend: The model.
            ticket: The request.
            receive: The ASGI callable, asked whether the client is still there.
            admitted: It was let in already, and its ticket's deadline is its own.

        Raises:
            DeadlineExceeded: If the answer is not there in time.
            Disconnected: If the client went away.
            RateLimited: As for `admit`.
            Overloaded: If its queue is full.
            MemoryShort: If its device had no memory for it, alone, for a quarter of the deadline.
            Exception: What the backend raised.
        """
        self._backend = backend
        lane = ticket.lane
        seconds = self._rules.deadline_seconds
        if admitted:
            seconds = max(0.001, (ticket.deadline_ns - self.clock()) / 1e9)
        else:
            self.admit(ticket)
        if not self.lanes.put(lane, ticket):
            raise Overloaded(self._drain_seconds(lane))
        self.dispatch()
        patience = Patience(ticket, receive, seconds)
        try:
            return await ticket.future
        finally:
            patience.end()
            ticket.detach()
            if self.lanes.waiting:
                self.lanes.discard(lane, ticket)

    def new_ticket(self, text: str, record: RequestRecord, lane: Lane, seconds: float | None = None) -> Ticket:
        """Return the ticket of a request that comes now.

        Args:
            text: The cleaned text.
            record: Its row.
            lane: Where it waits.
            seconds: Until its answer is too late; as the settings say unless given.
        """
        now = self.clock()
        deadline = now + (self._deadline_ns if seconds is None else int(seconds * 1e9))
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        return Ticket(text, record, lane, entered_ns=now, deadline_ns=deadline, future=future)

    def dispatch(self) -> None:
        """Hand over what can be handed over now, and come back when more can."""
        backend = self._backend
        if backend is None or not self.lanes.waiting:
            return
        if not self._vip_busy and (batch := self.lanes.take_vip(self._fits)):
            self._vip_busy = True
            self._hand_over(_Handed(self, backend, batch, "vip", own=True), self._vip_executor)
        if self._busy >= self._slots:
            return
        now = self.clock()
        while self._busy < self._slots and (taken := self.lanes.take(now, self._allowed, self._fits)):
            lane, batch = taken
            self._busy += 1
            self._long_busy += lane == "long"
            self._hand_over(_Handed(self, backend, batch, lane, own=False), self._executor)
        if self.lanes.waiting and self._busy < self._slots:
            if self.gate.measures:
                self._refuse_unfit(now)
            self._come_back(now)

    def _allowed(self, lane: Lane) -> bool:
        return lane != "long" or self._long_busy < self._long_slots

    def _fits(self, batch: list[Ticket]) -> bool:
        return not self.gate.measures or self.gate.allows(cells_of(batch))

    def _refuse_unfit(self, now: int) -> None:
        """Tell those at the head of a queue who have waited long for memory that there is none."""
        for lane in LANES:
            while (head := self.lanes.head(lane)) is not None:
                if now - head.entered_ns < _MEMORY_PATIENCE * self._deadline_ns or self._fits([head]):
                    break
                self.lanes.discard(lane, head)
                head.settle(MemoryShort())

    def _come_back(self, now: int) -> None:
        if self._wakeup is not None:
            return
        due = self.lanes.due_ns(now)
        # Nothing becomes ripe: a device has no room, or long texts wait for their thread, whose end wakes us as well.
        seconds = MEMORY_SCAN_SECONDS if due is None else max(0.0, due / 1e9)
        self._wakeup = asyncio.get_running_loop().call_later(seconds, self._woken)

    def _woken(self) -> None:
        self._wakeup = None
        self.dispatch()

    def _hand_over(self, handed: _Handed, executor: Executor) -> None:
        executor.post(handed.work, handed.settle)

    def done(self, lane: Lane, seconds: float, *, own: bool) -> None:
        """Take note that a batch is through, and hand over the next.

        Args:
            lane: Where it came from.
            seconds: What each of its requests took.
            own: Whether it ran on the thread for VIPs.
        """
        if own:
            self._vip_busy = False
        else:
            self._busy -= 1
            self._long_busy -= lane == "long"
        self._learn_pace(seconds)
        if self.lanes.waiting:
            self.dispatch()

    def _learn_pace(self, seconds: float) -> None:
        """Take note of a request's share of its batch's time."""
        before = self._row_seconds or seconds
        self._row_seconds = pace = before + _SMOOTHING * (seconds - before)
        if self._rules.ahead_seconds:
            ahead = min(_AHEAD_MOST, int(self._rules.ahead_seconds / max(pace, 1e-9)))
            self._slots = self._executor.threads * (1 + ahead)

    def _drain_seconds(self, lane: Lane) -> float:
        """Return when those who wait in a queue will have been served, at the pace of late."""
        seconds = self.lanes.depth(lane) * self._row_seconds / self._executor.threads
        return min(_RETRY_MOST_SECONDS, max(1.0, math.ceil(seconds)))


class _Handed:
    """A batch in a thread's hands.

    Args:
        scheduler: Told when it is through.
        backend: The model.
        batch: The requests.
        lane: Where they waited.
        own: Whether it runs on the thread for VIPs.
    """

    __slots__ = ("_batch", "_call", "_lane", "_own", "_scheduler")

    def __init__(self, scheduler: Scheduler, backend: Backend, batch: list[Ticket], lane: Lane, *, own: bool) -> None:
        self._scheduler = scheduler
        self._batch = batch
        self._lane: Lane = lane
        self._own = own
        self._call = BatchCall(backend, batch, next(scheduler.numbers), scheduler.batch_stage, scheduler.clock)

    def work(self) -> list[Result]:
        """Run it, in a thread."""
        gate = self._scheduler.gate
        if not gate.measures:
            return self._call()
        cells = cells_of(self._batch)
        gate.begin(cells)
        try:
            return self._call()
        finally:
            gate.end(cells)

    def settle(self, results: list[Result] | None, error: Exception | None) -> None:
        """Hand each request its result, in the event loop's thread."""
        batch = self._batch
        if results is None:
            results = [error or RuntimeError("no result")] * len(batch)
        for ticket, result in zip(batch, results, strict=True):
            ticket.settle(result)
        self._scheduler.done(self._lane, self._call.seconds / len(batch), own=self._own)


def cells_of(batch: list[Ticket]) -> int:
    """Return the size of a batch as the memory gate counts it."""
    return len(batch) * max(len(ticket.text) for ticket in batch)
