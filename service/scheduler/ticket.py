"""One request on its way to the model: where it waits, until when, and who may write to its row."""

from __future__ import annotations

import asyncio

from service.backend import Answer
from service.recording import NO_RECORD, RequestRecord
from service.scheduler.lanes import Lane

__all__ = ["DeadlineExceeded", "MemoryShort", "Overloaded", "RateLimited", "Ticket"]


class DeadlineExceeded(Exception):  # noqa: N818 - says what is wrong
    """The answer was not there in time; if it still comes, it is thrown away."""


class Overloaded(Exception):  # noqa: N818 - says what is wrong
    """Every place of the request's queue is taken.

    Args:
        retry_seconds: When there may be one.
    """

    def __init__(self, retry_seconds: float) -> None:
        super().__init__()
        self.retry_seconds = retry_seconds


class MemoryShort(Exception):  # noqa: N818 - says what is wrong
    """The model's device has no memory for this text, even alone."""


class RateLimited(Overloaded):
    """More requests a second than are let in."""


class Ticket:
    """A request that waits for the model.

    Args:
        text: The cleaned text.
        record: Its row.
        lane: Where it waits.
        entered_ns: When it came, on `perf_counter_ns`.
        deadline_ns: When its answer is too late.
        future: What its caller waits for.
    """

    __slots__ = ("batch_id", "deadline_ns", "entered_ns", "future", "lane", "record", "text", "tokens", "waited_ns")

    def __init__(
        self,
        text: str,
        record: RequestRecord,
        lane: Lane,
        *,
        entered_ns: int,
        deadline_ns: int,
        future: asyncio.Future[Answer],
    ) -> None:
        self.text = text
        self.record = record
        self.lane = lane
        self.entered_ns = entered_ns
        self.deadline_ns = deadline_ns
        self.future = future
        self.tokens = -1
        self.waited_ns = 0
        self.batch_id = 0

    def detach(self) -> None:
        """Keep away from the row from now on: its request is over, and its open slot may be another's."""
        self.record = NO_RECORD

    def settle(self, result: Answer | Exception) -> None:
        """Hand the result to whoever waits; in the event loop's thread."""
        if self.future.done():
            return
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)
