"""The CPU model's own thread and queue, for when the wanted model cannot be asked: answers now or later.

Spans: fallback.cpu > vectorizer, in the rows of those who wait for the answer. A request that got 202 has ended when
it is worked on: of its work the result tells the time, and `model_results_total` that it was done.

Memory: `places` texts, which wait here and nowhere else, and the store's results.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.backend import Backend, pad
from service.degradation.results import ResultStore
from service.executor import Executor
from service.long_texts import merged, rows_of
from service.postprocess.confidence import Verdict, verdict
from service.recording import NO_RECORD, RequestRecord

__all__ = ["Deferred", "Fallback", "NoRoom"]

_SMOOTHING: Final = 0.1


class NoRoom(Exception):  # noqa: N818 - says what is wrong
    """The CPU model has enough to do, or no more results can be kept.

    Args:
        retry_seconds: When there may be room.
    """

    def __init__(self, retry_seconds: int) -> None:
        super().__init__()
        self.retry_seconds = retry_seconds


@dataclass(frozen=True, slots=True)
class Deferred:
    """An answer that will be there later.

    Attributes:
        number: Its id.
        retry_seconds: When it will probably be there, whole seconds.
    """

    number: str
    retry_seconds: int


class _Job:
    """One text for the CPU model; `record` is taken away when its request ends first."""

    __slots__ = ("abandoned", "backend", "because", "record", "text", "tokens")

    def __init__(self, backend: Backend, text: str, because: str, record: RequestRecord) -> None:
        self.backend, self.text, self.because, self.record = backend, text, because, record
        self.tokens = -1
        self.abandoned = False

    def __call__(self) -> Verdict | None:
        if self.abandoned:
            return None
        backend = self.backend
        with self.record.stage("fallback.cpu", because=self.because, batch_size=1):
            found = backend.encode(self.text)
            self.tokens = found.tokens
            ids, mask = pad(rows_of(found))
            with self.record.stage("vectorizer", seq_len=ids.shape[1], model_version=backend.version):
                logits = merged(backend.forward(ids, mask), found, backend, self.record)
        return verdict(logits[0].tolist(), backend.temperature, backend.labels)


class Fallback:
    """Used from one event loop.

    Args:
        executor: Its thread.
        places: Most texts that wait or are worked on.
        store: Where answers wait to be fetched.
        clock: Monotonic seconds.
    """

    def __init__(
        self, executor: Executor, places: int, store: ResultStore, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.store = store
        self._executor, self._places, self._clock = executor, places, clock
        self._pace = 0.0

    def later(self, backend: Backend, text: str, reason: str) -> Deferred:
        """Take a text whose answer is fetched later.

        Args:
            backend: The model; its own `encode` and `forward` compute in this process.
            text: The cleaned and masked text.
            reason: Why the answer is degraded.

        Raises:
            NoRoom: If there is none.
        """
        number = self.store.accept() if self._has_room() else None
        if number is None:
            raise NoRoom(self._retry_seconds())
        came = self._clock()
        job = _Job(backend, text, reason, NO_RECORD)

        def work() -> None:
            began = self._clock()
            try:
                found = job()
            except Exception:  # noqa: BLE001 - whatever a backend throws: nobody judged, and that is the answer
                found = None
            said = found or Verdict("neutral", 0.0)
            latency = int((self._clock() - came) * 1e6) / 1000
            told = {"sentiment": said.label, "confidence": round(said.confidence, 6), "latency_ms": latency}
            self.store.put(number, told | {"degraded": True, "reason": reason if found else "model_error"})
            self._learn(self._clock() - began)

        self._executor.post(work, lambda _result, _error: None)
        return Deferred(number, self._retry_seconds())

    async def now(
        self, backend: Backend, text: str, reason: str, record: RequestRecord, seconds: float
    ) -> tuple[Verdict, int]:
        """Return the CPU model's verdict and the number of tokens.

        Args:
            backend: As for `later`.
            text: As for `later`.
            reason: Why the answer is degraded.
            record: The request's row.
            seconds: Time that is left.

        Raises:
            NoRoom: If there is none.
            TimeoutError: If it is not there in time.
            Exception: What the backend raised.
        """
        if not self._has_room():
            raise NoRoom(self._retry_seconds())
        future: asyncio.Future[Verdict | None] = asyncio.get_running_loop().create_future()
        job = _Job(backend, text, reason, record)

        def settle(found: Verdict | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(found)

        self._executor.post(job, settle)
        try:
            found = await asyncio.wait_for(future, seconds)
        finally:
            # From here on the row may be another's.
            job.record, job.abandoned = NO_RECORD, True
        if found is None:
            raise TimeoutError
        return found, job.tokens

    def _has_room(self) -> bool:
        return self._executor.pending < self._places

    def _retry_seconds(self) -> int:
        return max(1, math.ceil(self._executor.pending * self._pace))

    def _learn(self, seconds: float) -> None:
        before = self._pace or seconds
        self._pace = before + _SMOOTHING * (seconds - before)
