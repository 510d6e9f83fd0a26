"""One text through the model, off the event loop and within a deadline; too late is an answer too, and says so.

Three things have names of their own in the row: waiting for a thread (`scheduler.dispatch`, queue_wait_ns), the
tokenizer, the model. What goes wrong behind the contract never becomes a 500: the caller gets a degraded answer with
the reason, and the row keeps it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal

from service.backend import Answer, Backend, infer, pad
from service.executor import BoundedExecutor, DeadlineExceeded, QueueFull
from service.recording import NO_RECORD, Attribute, RequestRecord, StageHandle

__all__ = ["Degraded", "Judgement", "Predictor", "softmax"]

Degraded = Literal["deadline", "queue_full", "model_error", "fallback"]

_log = logging.getLogger("service.predict")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of a text.

    Attributes:
        sentiment: The label.
        confidence: Its calibrated probability, 0..1.
        degraded: Why the model was not heard, or that another than the wanted one was; else None.
    """

    sentiment: str
    confidence: float
    degraded: Degraded | None = None


_UNHEARD: Final[dict[str, Judgement]] = {
    "deadline": Judgement("neutral", 0.0, "deadline"),
    "queue_full": Judgement("neutral", 0.0, "queue_full"),
    "model_error": Judgement("neutral", 0.0, "model_error"),
}


def softmax(logits: Sequence[float], temperature: float) -> list[float]:
    """Return the probabilities of logits divided by the temperature; finite logits of any size are fine."""
    # Plain floats: three numbers are done before numpy has checked its arguments.
    top = max(logits)
    weights = [math.exp((value - top) / temperature) for value in logits]
    total = sum(weights)
    return [weight / total for weight in weights]


class _Work:
    """What a thread does for one request. It writes to the row only while somebody still waits for the answer."""

    __slots__ = ("_backend", "_record", "_text", "_until_ns", "tokens", "waited_ns")

    def __init__(self, backend: Backend, text: str, record: RequestRecord, seconds: float) -> None:
        self._backend = backend
        self._text = text
        self._record = record
        self._until_ns = time.perf_counter_ns() + int(seconds * 1e9)
        self.tokens = -1
        self.waited_ns = 0

    def detach(self) -> None:
        """Keep away from the row from now on: its request is over, and its open slot may be another's."""
        self._record = NO_RECORD

    def __call__(self, waited_ns: int) -> Answer:
        backend = self._backend
        self.waited_ns = waited_ns
        with self._record.stage("sentiment.tokenizer") as stage:
            encoded = backend.encode(self._text)
            ids, mask = pad([encoded.ids])
            self.tokens = encoded.tokens
            width = ids.shape[1]
            stage.set(
                tokens=encoded.tokens,
                truncated=encoded.truncated,
                seq_len=width,
                padding_ratio=1.0 - len(encoded.ids) / width,
            )
        left = (self._until_ns - time.perf_counter_ns()) / 1e9
        return infer(backend, ids, mask, self, left)

    def stage(self, name: str, /, **attributes: Attribute) -> AbstractContextManager[StageHandle]:
        """Enter a stage of the request, if somebody still waits for it."""
        return self._record.stage(name, **attributes)


class Predictor:
    """Judges texts by handing them to the executor.

    Args:
        executor: Where the work is done.
        deadline_seconds: Most time from handing over to the answer.
    """

    def __init__(self, executor: BoundedExecutor, deadline_seconds: float) -> None:
        self._executor = executor
        self._deadline_seconds = deadline_seconds

    async def judge(self, backend: Backend, text: str, record: RequestRecord) -> Judgement:
        """Return the judgement of a cleaned text; it always returns one, at the latest at the deadline."""
        work = _Work(backend, text, record, self._deadline_seconds)
        with record.stage("scheduler.dispatch") as stage:
            try:
                answer = await self._executor.run(work, self._deadline_seconds)
            except QueueFull:
                return self._unheard("queue_full", record)
            except DeadlineExceeded:
                return self._unheard("deadline", record)
            except Exception as error:  # noqa: BLE001 - whatever a backend throws; said in the row and the log
                _log.warning("model error: %s", type(error).__name__)
                record.set(error_type=type(error).__name__)
                return self._unheard("model_error", record)
            finally:
                work.detach()
            stage.set(queue_wait_ns=work.waited_ns)
        with record.stage("postprocess.confidence"):
            probabilities = softmax(answer.logits[0].tolist(), backend.temperature)
            confidence = max(probabilities)
            label = backend.labels[probabilities.index(confidence)]
            record.set(tokens=work.tokens, confidence=confidence, label=label, model_version=answer.version)
        if answer.degraded is not None:
            record.degraded("fallback")
            return Judgement(label, confidence, "fallback")
        return Judgement(label, confidence)

    def _unheard(self, reason: Literal["deadline", "queue_full", "model_error"], record: RequestRecord) -> Judgement:
        record.degraded(reason)
        return _UNHEARD[reason]
