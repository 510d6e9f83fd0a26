"""One text through the model, off the event loop and within a deadline; too late is an answer too, and says so.

Three things have names of their own in the row: waiting for a thread (`scheduler.dispatch`, queue_wait_ns), the
tokenizer, the model. What goes wrong behind the contract never becomes a 500: the caller gets a degraded answer with
the reason, and the row keeps it; who finds no room in front of the model is told when to come back.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from service.backend import Backend
from service.body_limit import Disconnected
from service.errors import Refusal
from service.postprocess.confidence import InProcess, Postprocess
from service.recording import RequestRecord
from service.scheduler.dispatcher import Scheduler
from service.scheduler.patience import Receive
from service.scheduler.ticket import DeadlineExceeded, Overloaded, RateLimited

__all__ = ["Degraded", "Judgement", "Predictor"]

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


class Predictor:
    """Judges texts by handing them to the scheduler.

    Args:
        scheduler: Decides when a text comes to the model.
        drift: Returns what rows tell of the inputs' drift from the training, if anything is known.
        postprocess: Makes a verdict of logits.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        drift: Callable[[], Mapping[str, float]] = dict,
        postprocess: Postprocess | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._drift = drift
        self._postprocess = postprocess or InProcess()

    async def judge(
        self,
        backend: Backend,
        text: str,
        record: RequestRecord,
        *,
        vip: bool = False,
        receive: Receive | None = None,
    ) -> Judgement:
        """Return the judgement of a cleaned text, at the latest at the deadline.

        Args:
            backend: The model.
            text: The cleaned text.
            record: The request's row.
            vip: Whether it goes first; a VIP is never refused, at worst its answer is degraded.
            receive: The ASGI callable, asked whether the client is still there.

        Raises:
            Refusal: 429 if there are too many requests.
            Disconnected: If the client went away.
        """
        scheduler = self._scheduler
        lane = scheduler.lane_of(len(text), vip=vip)
        with record.stage("scheduler.dispatch", queue=lane, queue_depth=scheduler.lanes.depth(lane)) as stage:
            ticket = scheduler.new_ticket(text, record, lane)
            try:
                answer = await scheduler.run(backend, ticket, receive)
            except Overloaded as error:
                if vip:
                    return self._unheard("queue_full", record)
                raise _come_again(error) from None
            except DeadlineExceeded:
                return self._unheard("deadline", record)
            except Disconnected:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a backend throws; said in the row and the log
                _log.warning("model error: %s", type(error).__name__)
                record.set(error_type=type(error).__name__, batch_id=ticket.batch_id)
                return self._unheard("model_error", record)
            stage.set(queue_wait_ns=ticket.waited_ns)
        with record.stage("postprocess.confidence") as stage:
            logits = answer.logits[0].tolist()
            verdict, where = await self._postprocess.judge(logits, backend.temperature, backend.labels)
            if where != "process":
                stage.set(where=where)
            record.set(
                tokens=ticket.tokens,
                confidence=verdict.confidence,
                label=verdict.label,
                model_version=answer.version,
                batch_id=ticket.batch_id,
                **self._drift(),
            )
        if answer.degraded is not None:
            record.degraded("fallback")
            return Judgement(verdict.label, verdict.confidence, "fallback")
        return Judgement(verdict.label, verdict.confidence)

    def _unheard(self, reason: Literal["deadline", "queue_full", "model_error"], record: RequestRecord) -> Judgement:
        record.degraded(reason)
        return _UNHEARD[reason]


def _come_again(error: Overloaded) -> Refusal:
    """Return the refusal of a request for which there is no room, with when there may be."""
    limited = isinstance(error, RateLimited)
    seconds = max(1, math.ceil(error.retry_seconds))
    why = "more requests a second than the service takes" if limited else "the queue in front of the model is full"
    return Refusal(
        429,
        "rate_limited" if limited else "queue_full",
        f"{why}; ask again in {seconds} s",
        headers={"retry-after": str(seconds)},
    )
