"""One batch through the model, in a thread: tokenized one by one, padded to one tensor, sent as one call.

A row of a request that nobody waits for any more is left out before the call, and kept away from afterwards. Where a
whole batch fails, its requests are sent again one by one: one bad row must not cost seven others their answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from service.backend import Answer, Backend, Encoded, infer, pad
from service.long_texts import merged, rows_of
from service.recorder_link import traceparent
from service.recording import Attribute, RequestRecord, StageHandle
from service.scheduler.ticket import DeadlineExceeded, Ticket

__all__ = ["BatchCall", "BatchStage", "Result"]

Result = Answer | Exception


class BatchStage(Protocol):
    """Enters one stage of many rows; `RecorderLink.batch_stage` is one."""

    def __call__(
        self, records: Sequence[RequestRecord], name: str, batch_id: int, attributes: dict[str, Attribute]
    ) -> AbstractContextManager[StageHandle]:
        """Return the stage, entered in every row."""


class _Rows:
    """Tells the stages of one call to the rows of its batch."""

    def __init__(self, tickets: Sequence[Ticket], number: int, batch_stage: BatchStage) -> None:
        self._tickets = tickets
        self._number = number
        self._batch_stage = batch_stage

    def stage(self, name: str, /, **attributes: Attribute) -> AbstractContextManager[StageHandle]:
        """Enter a stage of all of them."""
        if len(self._tickets) == 1:
            return self._tickets[0].record.stage(name, **attributes)
        return self._batch_stage([ticket.record for ticket in self._tickets], name, self._number, attributes)

    def traceparent(self, stage: str) -> str:
        """Return the header for a process that is asked in a stage; of a batch the first request is its parent."""
        return traceparent(self._tickets[0].record, stage)


class BatchCall:
    """What a thread does for one batch.

    Args:
        backend: The model.
        tickets: The requests.
        number: Number of the batch, for the rows.
        batch_stage: Enters a stage of many rows.
        clock: Nanoseconds, as in the tickets.
    """

    def __init__(
        self,
        backend: Backend,
        tickets: Sequence[Ticket],
        number: int,
        batch_stage: BatchStage,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.tickets = tickets
        self.number = number
        self.seconds = 0.0
        self._backend = backend
        self._batch_stage = batch_stage
        self._clock = clock

    def __call__(self) -> list[Result]:
        """Return a result for each request, in their order."""
        started = self._clock()
        if len(self.tickets) == 1:
            result = self._alone(self.tickets[0], started)
            self.seconds = (self._clock() - started) / 1e9
            return [result]
        results: dict[int, Result] = {}
        encoded: list[tuple[Ticket, Encoded, StageHandle]] = []
        for ticket in self.tickets:
            # Whoever left or was too late while the batch waited for its thread.
            if ticket.future.done():
                results[id(ticket)] = DeadlineExceeded()
                continue
            ticket.waited_ns = started - ticket.entered_ns
            ticket.batch_id = self.number
            try:
                encoded.append(self._encode(ticket))
            except Exception as error:  # noqa: BLE001 - whatever a tokenizer throws is this request's alone
                results[id(ticket)] = error
        if encoded:
            results |= self._send(encoded)
        self.seconds = (self._clock() - started) / 1e9
        return [results[id(ticket)] for ticket in self.tickets]

    def _alone(self, ticket: Ticket, started: int) -> Result:
        """Do the same for one request, without what only many need."""
        if ticket.future.done():
            return DeadlineExceeded()
        ticket.waited_ns = started - ticket.entered_ns
        ticket.batch_id = self.number
        try:
            with ticket.record.stage("sentiment.tokenizer") as stage:
                found = self._backend.encode(ticket.text)
                rows = rows_of(found)
                ids, mask = pad(rows)
                width = ids.shape[1]
                ticket.tokens = found.tokens
                stage.set(
                    tokens=found.tokens,
                    truncated=found.truncated,
                    seq_len=width,
                    padding_ratio=1.0 - sum(map(len, rows)) / ids.size,
                    unknown_ratio=found.unknown / max(1, found.tokens),
                )
            left = (ticket.deadline_ns - self._clock()) / 1e9
            answer = infer(self._backend, ids, mask, _Rows(self.tickets, self.number, self._batch_stage), left)
            return answer._replace(logits=merged(answer.logits, found, self._backend, ticket.record))
        except Exception as error:  # noqa: BLE001 - whatever a backend throws; handed to who waits
            return error

    def _encode(self, ticket: Ticket) -> tuple[Ticket, Encoded, StageHandle]:
        with ticket.record.stage("sentiment.tokenizer") as stage:
            found = self._backend.encode(ticket.text)
            ticket.tokens = found.tokens
            width = max(1, len(found.ids))
            stage.set(
                tokens=found.tokens,
                truncated=found.truncated,
                seq_len=width,
                padding_ratio=0.0,
                unknown_ratio=found.unknown / max(1, found.tokens),
            )
        return ticket, found, stage

    def _send(self, encoded: Sequence[tuple[Ticket, Encoded, StageHandle]]) -> dict[int, Result]:
        """Send one tensor; if that fails, one for each request."""
        tickets = [ticket for ticket, _, _ in encoded]
        parts = [rows_of(found) for _, found, _ in encoded]
        ids, mask = pad([row for rows in parts for row in rows])
        width = ids.shape[1]
        if len(ids) > 1 or width > len(parts[0][0]):
            for rows, (_, _, stage) in zip(parts, encoded, strict=True):
                used = sum(map(len, rows))
                # `widest` names who the others were padded for.
                stage.set(
                    seq_len=width, padding_ratio=1.0 - used / (width * len(rows)), widest=max(map(len, rows)) == width
                )
        left = (max(ticket.deadline_ns for ticket in tickets) - self._clock()) / 1e9
        try:
            answer = infer(self._backend, ids, mask, _Rows(tickets, self.number, self._batch_stage), left)
        except Exception as error:  # noqa: BLE001 - whatever a backend throws; handed to those who wait
            if len(encoded) == 1:
                return {id(tickets[0]): error}
            return self._one_by_one(encoded, error)
        logits, degraded, version = answer
        results: dict[int, Result] = {}
        place = 0
        for rows, (ticket, found, _) in zip(parts, encoded, strict=True):
            own = logits[place : place + len(rows)]
            place += len(rows)
            results[id(ticket)] = Answer(merged(own, found, self._backend, ticket.record), degraded, version)
        return results

    def _one_by_one(
        self, encoded: Sequence[tuple[Ticket, Encoded, StageHandle]], error: Exception
    ) -> dict[int, Result]:
        results: dict[int, Result] = {}
        for one in encoded:
            ticket = one[0]
            late = self._clock() >= ticket.deadline_ns or ticket.future.done()
            results |= {id(ticket): error} if late else self._send([one])
        return results
