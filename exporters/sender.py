"""Spans to an OTLP target, from a thread of its own: whatever the target does, nothing else waits for it.

Bounded: at most `queue_spans` spans wait, more are dropped and counted; nothing waits longer than `deadline_seconds`.
Answers are read as the OTLP specification says: 429, 502, 503, 504 and a broken connection are tried again, 413 with a
smaller body, everything else is final.
"""

from __future__ import annotations

import collections
import gzip
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from exporters.otlp import export_request
from exporters.totals import Totals

__all__ = ["Answer", "Parcel", "Sender", "Transport"]

RETRY_STATUSES: Final = frozenset({429, 502, 503, 504})
# Marks of delivered traces wait for the next tick; without ticks the oldest go.
_MARKS_KEPT: Final = 4096

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parcel:
    """The spans of one request.

    Attributes:
        resource: Their resource, encoded.
        body: The spans, encoded.
        spans: How many.
        mark: What `Sender.take_delivered` gives back once they are delivered.
        queued: When they were queued, on the sender's clock.
    """

    resource: bytes
    body: bytes
    spans: int
    mark: object = None
    queued: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What the target said.

    Attributes:
        status: HTTP status, also of what came by gRPC; 0 when there was no answer.
        retry_after_seconds: What it asked to wait, 0 when it did not ask.
        rejected_spans: Spans that it refused out of an accepted body (partial success).
    """

    status: int
    retry_after_seconds: float = 0.0
    rejected_spans: int = 0


class Transport(Protocol):
    """Posts one body; never raises for what the target or the network does."""

    def post(self, body: bytes, *, compressed: bool) -> Answer:
        """Return the target's answer."""

    def close(self) -> None:
        """Close the connection."""


class Sender:
    """Queue and thread between the rows and an OTLP target."""

    def __init__(
        self,
        transport: Transport,
        *,
        version: str,
        queue_spans: int = 50_000,
        batch_spans: int = 512,
        deadline_seconds: float = 60.0,
        compress: bool = False,
        first_pause_seconds: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `start` begins sending.

        Args:
            transport: Posts bodies.
            version: The exporter's version.
            queue_spans: Spans that may wait.
            batch_spans: Spans of one body, about.
            deadline_seconds: Longest time that spans are tried to be delivered.
            compress: Whether bodies are gzipped.
            first_pause_seconds: First pause after a failure; doubles up to 30 times as much.
            clock: Monotonic seconds.
        """
        self._transport = transport
        self._version = version
        self._queue_spans = queue_spans
        self._batch_spans = batch_spans
        self._deadline = deadline_seconds
        self._compress = compress
        self._first_pause = first_pause_seconds
        self._clock = clock
        self._queue: collections.deque[Parcel] = collections.deque()
        self._queued = 0
        self._under_way: float | None = None
        self._wake = threading.Condition()
        self._stopping = False
        self._give_up_at = float("inf")
        self._counts = Totals()
        self._delivered: collections.deque[object] = collections.deque(maxlen=_MARKS_KEPT)
        self._broken = False
        self._thread = threading.Thread(target=self._run, name="otlp-sender", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, parcel: Parcel) -> None:
        """Queue a request's spans, or drop and count them when the queue is full; never waits for the target."""
        with self._wake:
            if self._stopping or self._queued + parcel.spans > self._queue_spans:
                # The newest is dropped: the oldest ones are nearest to being sent, and dropping is not worth a search.
                self._drop("queue_full", parcel.spans)
                return
            self._queue.append(Parcel(parcel.resource, parcel.body, parcel.spans, parcel.mark, self._clock()))
            self._queued += parcel.spans
            self._wake.notify()

    @property
    def queued(self) -> int:
        """Spans that wait, those under way included."""
        with self._wake:
            return self._queued

    @property
    def waiting_seconds(self) -> float:
        """How long the oldest span has waited, those under way included; 0 when none waits."""
        with self._wake:
            since = self._under_way if self._under_way is not None else self._queue[0].queued if self._queue else None
            return 0.0 if since is None else max(0.0, self._clock() - since)

    @property
    def alive(self) -> bool:
        """Whether the thread works."""
        return self._thread.is_alive()

    def take_counts(self) -> Totals:
        """Return what was counted since the last call."""
        with self._wake:
            counts, self._counts = self._counts, Totals()
            return counts

    def take_delivered(self) -> list[object]:
        """Return the marks of the requests that were delivered since the last call."""
        with self._wake:
            marks = list(self._delivered)
            self._delivered.clear()
            return marks

    def stop(self, within_seconds: float = 2.0) -> None:
        """Send what waits, for so long at most; the rest is counted as dropped."""
        with self._wake:
            self._stopping = True
            self._give_up_at = self._clock() + within_seconds
            self._wake.notify()
        if self._thread.ident is not None:
            # The transport's own time limit bounds what is under way; the thread is a daemon.
            self._thread.join(within_seconds + 1.0)
        with self._wake:
            if self._queued:
                self._drop("not_delivered_at_exit", self._queued)
            self._queue.clear()
            self._queued = 0

    def _run(self) -> None:
        """Send batches until stopped; one that raises costs itself."""
        while batch := self._next_batch():
            parts = [batch]
            while parts:
                part = parts.pop()
                try:
                    parts += reversed(self._deliver(part))
                except Exception as error:  # noqa: BLE001 - whatever it is, the spans after it must still be sent
                    self._failed(part, error)
                else:
                    self._broken = False
            with self._wake:
                self._under_way = None
        self._transport.close()

    def _next_batch(self) -> list[Parcel]:
        """Wait for parcels and return some; an empty list ends the thread."""
        with self._wake:
            while not self._queue:
                if self._stopping:
                    return []
                self._wake.wait()
            if self._clock() >= self._give_up_at:
                return []
            batch: list[Parcel] = []
            spans = 0
            while self._queue and (not batch or spans + self._queue[0].spans <= self._batch_spans):
                batch.append(self._queue.popleft())
                spans += batch[-1].spans
            self._under_way = batch[0].queued
            return batch

    def _deliver(self, batch: list[Parcel]) -> list[list[Parcel]]:
        """Try to deliver a batch until it is accepted, refused, or too old; return it in halves if it is too large."""
        pause = self._first_pause
        while True:
            answer = self._transport.post(self._body(batch), compressed=self._compress)
            if 200 <= answer.status < 300:
                self._accepted(batch, answer.rejected_spans)
                return []
            # By requests, never inside one: a trace that arrives in part misleads more than one that is missing.
            if answer.status == 413 and len(batch) > 1:
                middle = len(batch) // 2
                return [batch[:middle], batch[middle:]]
            if answer.status != 0 and answer.status not in RETRY_STATUSES:
                self._done(batch, "too_large" if answer.status == 413 else "rejected")
                return []
            # Jitter, so that many exporters do not come back to a restarted collector at one moment.
            wait = max(answer.retry_after_seconds, pause * random.uniform(0.8, 1.2))
            if self._clock() + wait > min(batch[0].queued + self._deadline, self._give_up_at):
                self._done(batch, "not_delivered_at_exit" if self._stopping else "deadline")
                return []
            self._pause(wait)
            pause = min(pause * 2, self._first_pause * 30)

    def _failed(self, batch: list[Parcel], error: Exception) -> None:
        """Count a batch that could not be made or sent, and say it once."""
        self._done(batch, "failed")
        if not self._broken:
            _log.error("spans not sent (%s: %s); dropped and counted", type(error).__name__, error, exc_info=error)
        # Until a batch goes well again: the same line for each batch would fill a disk.
        self._broken = True

    def _body(self, batch: list[Parcel]) -> bytes:
        """Return the request body of a batch."""
        by_resource: dict[bytes, list[bytes]] = {}
        for parcel in batch:
            by_resource.setdefault(parcel.resource, []).append(parcel.body)
        body = export_request(by_resource, self._version)
        return gzip.compress(body, compresslevel=1) if self._compress else body

    def _pause(self, seconds: float) -> None:
        """Wait, but not past the moment at which everything is given up."""
        until = self._clock() + seconds
        with self._wake:
            while (left := min(until, self._give_up_at) - self._clock()) > 0:
                self._wake.wait(left)

    def _accepted(self, batch: list[Parcel], rejected: int) -> None:
        """Count a delivered batch."""
        spans = sum(parcel.spans for parcel in batch)
        refused = min(rejected, spans)
        with self._wake:
            self._queued -= spans
            self._counts.add("telemetry_spans_sent_total", (), spans - refused)
            if refused:
                # Which ones were refused is not told, so that none of them may be pointed at.
                self._drop("rejected", refused)
            else:
                self._delivered.extend(parcel.mark for parcel in batch if parcel.mark is not None)

    def _done(self, batch: list[Parcel], reason: str) -> None:
        """Count a batch that will not be delivered."""
        spans = sum(parcel.spans for parcel in batch)
        with self._wake:
            self._queued -= spans
            self._drop(reason, spans)

    def _drop(self, reason: str, spans: int) -> None:
        """Count dropped spans; the caller holds the lock."""
        self._counts.add("telemetry_spans_dropped_total", (reason,), spans)
