"""One text through the model, off the event loop and within a deadline; too late is an answer too, and says so.

Three things have names of their own in the row: waiting for a thread (`scheduler.dispatch`, queue_wait_ns), the
tokenizer, the model. What goes wrong behind the contract never becomes a 500: the caller gets a degraded answer with
the reason, and the row keeps it; who finds no room in front of the model is told when to come back.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping

from service.backend import Answer, Backend
from service.body_limit import Disconnected
from service.canary.route import Canary, Pick
from service.degradation.answers import DegradedAnswers
from service.degradation.fallback import Deferred
from service.errors import Refusal
from service.judgement import UNHEARD, Degraded, Judgement, Unheard
from service.postprocess.confidence import InProcess, Postprocess
from service.recording import RequestRecord
from service.scheduler.dispatcher import Scheduler
from service.scheduler.patience import Receive
from service.scheduler.ticket import DeadlineExceeded, MemoryShort, Overloaded, RateLimited, Ticket

__all__ = ["Degraded", "Judgement", "Predictor"]

_log = logging.getLogger("service.predict")


class Predictor:
    """Judges texts by handing them to the scheduler.

    Args:
        scheduler: Decides when a text comes to the model.
        drift: Returns what rows tell of the inputs' drift from the training, if anything is known.
        postprocess: Makes a verdict of logits.
        degraded: Answers where the wanted model cannot be asked; None: nobody does.
        canary: Chooses the version of the model; None: there is one.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        drift: Callable[[], Mapping[str, float]] = dict,
        postprocess: Postprocess | None = None,
        degraded: DegradedAnswers | None = None,
        canary: Canary | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._drift = drift
        self._postprocess = postprocess or InProcess()
        self._canary = canary
        self._degraded = degraded

    async def judge(
        self,
        backend: Backend,
        text: str,
        record: RequestRecord,
        *,
        vip: bool = False,
        receive: Receive | None = None,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> Judgement | Deferred:
        """Return the judgement of a cleaned text, at the latest at the deadline, or where it can be fetched later.

        Args:
            backend: The model.
            text: The cleaned text.
            record: The request's row.
            vip: Whether it goes first; a VIP is never refused, at worst its answer is degraded.
            receive: The ASGI callable, asked whether the client is still there.
            headers: The request's; they may name a version of the model.

        Raises:
            Refusal: 429 if there are too many requests, 404 if a version is named that is not served,
                503 if the model's device has no memory for this text.
            Disconnected: If the client went away.
        """
        scheduler = self._scheduler
        pick = None if self._canary is None else self._canary.pick(headers, backend, vip=vip)
        lane = scheduler.lane_of(len(text), vip=vip)
        with record.stage("scheduler.dispatch", queue=lane, queue_depth=scheduler.lanes.depth(lane)) as stage:
            if self._degraded is not None and (why := self._degraded.reason(backend)) is not None:
                return await self._degraded.answer(backend, text, record, why, vip=vip)
            ticket = scheduler.new_ticket(text, record, lane)
            try:
                answer = await self._ask(pick, backend, ticket, receive)
            except MemoryShort:
                return await self._no_memory(backend, text, record, vip=vip)
            except Overloaded as error:
                return await self._no_room(error, backend, text, record, vip=vip)
            except DeadlineExceeded:
                return self._unheard("deadline", record)
            except Disconnected:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a backend throws; said in the row and the log
                _log.warning("model error: %s", type(error).__name__)
                record.set(error_type=type(error).__name__, batch_id=ticket.batch_id)
                return self._unheard("model_error", record)
            stage.set(queue_wait_ns=ticket.waited_ns)
        return await self._heard(pick, backend, answer, ticket, record)

    async def _ask(self, pick: Pick | None, stable: Backend, ticket: Ticket, receive: Receive | None) -> Answer:
        if pick is None or self._canary is None:
            return await self._scheduler.run(stable, ticket, receive)
        return await self._canary.run(pick, stable, ticket, receive, self._scheduler)

    async def _heard(
        self, pick: Pick | None, stable: Backend, answer: Answer, ticket: Ticket, record: RequestRecord
    ) -> Judgement:
        """Return what an answer's logits say, by temperature and labels of the version that gave them."""
        teller = stable if pick is None or answer.version == stable.version else pick.backend
        with record.stage("postprocess.confidence") as stage:
            logits = answer.logits[0].tolist()
            verdict, where = await self._postprocess.judge(logits, teller.temperature, teller.labels)
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
        degraded: Degraded | None = None
        if answer.degraded is not None:
            record.degraded("fallback")
            degraded = "fallback"
        if pick is None or self._canary is None:
            return Judgement(verdict.label, verdict.confidence, degraded)
        afterwards = self._canary.comparison(pick, stable, ticket.text, answer, record)
        return Judgement(verdict.label, verdict.confidence, degraded, answer.version, afterwards)

    async def _no_room(
        self, error: Overloaded, backend: Backend, text: str, record: RequestRecord, *, vip: bool
    ) -> Judgement | Deferred:
        """Return the answer to a request whose queue is full.

        Raises:
            Refusal: 429 where nobody answers in the model's place.
        """
        if self._degraded is not None and not isinstance(error, RateLimited):
            other = await self._degraded.queue_full(backend, text, record, vip=vip)
            if other is not None:
                return other
        if vip:
            return self._unheard("queue_full", record)
        raise _come_again(error) from None

    async def _no_memory(self, backend: Backend, text: str, record: RequestRecord, *, vip: bool) -> Judgement:
        """Return a VIP's degraded answer.

        Raises:
            Refusal: To others, 503: the request is in order and not too many came, this server lacks memory.
        """
        if not vip:
            message = "the model's device has no memory for this text now; ask again in 1 s"
            raise Refusal(503, "memory", message, headers={"retry-after": "1"})
        if self._degraded is None:
            return self._unheard("memory", record)
        return await self._degraded.now(backend, text, record, "memory", vip=True)

    def _unheard(self, reason: Unheard, record: RequestRecord) -> Judgement:
        record.degraded(reason)
        return UNHEARD[reason]


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
