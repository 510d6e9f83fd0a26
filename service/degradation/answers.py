"""What a request gets while the wanted model cannot be asked: the CPU model's answer now, or later, or a refusal.

VIP        200 with `degraded`, by the CPU model; neutral with confidence 0 if that has no room or no time either.
everybody  by the setting of the reason: later is 202 with a place to fetch the answer, now is as for a VIP; 429 with
           Retry-After where there is no room for one more.
"""

from __future__ import annotations

import logging

from service.backend import Backend
from service.degradation.fallback import Deferred, Fallback, NoRoom
from service.degradation.rules import Degradation, Reason
from service.errors import Refusal
from service.judgement import UNHEARD, Judgement, Unheard
from service.recording import RequestRecord

__all__ = ["DegradedAnswers"]

_log = logging.getLogger("service.degradation")


class DegradedAnswers:
    """Answers in the wanted model's place.

    Args:
        degradation: Knows whether the service is degraded.
        fallback: The CPU model.
        seconds: Most time for an answer now.
    """

    def __init__(self, degradation: Degradation, fallback: Fallback, seconds: float) -> None:
        self._degradation, self._fallback, self._seconds = degradation, fallback, seconds
        self.reason = degradation.reason

    async def answer(
        self, backend: Backend, text: str, record: RequestRecord, reason: Reason, *, vip: bool
    ) -> Judgement | Deferred:
        """Return the answer, or where it will be.

        Args:
            backend: The model; its own `encode` and `forward` compute in this process.
            text: The cleaned text.
            record: The request's row.
            reason: Why the wanted model is not asked.
            vip: Whether the answer must come now.

        Raises:
            Refusal: 429 if there is no room.
        """
        if vip or self._degradation.rules.answers[reason] == "now":
            return await self.now(backend, text, record, reason, vip=vip)
        try:
            deferred = self._fallback.later(backend, text, reason)
        except NoRoom as full:
            raise _come_again(full.retry_seconds) from None
        record.degraded(reason)
        return deferred

    async def queue_full(
        self, backend: Backend, text: str, record: RequestRecord, *, vip: bool
    ) -> Judgement | Deferred | None:
        """Return the answer to a request whose queue had no place; None where the settings leave it refused.

        Args:
            backend: As for `answer`.
            text: As for `answer`.
            record: As for `answer`.
            vip: As for `answer`.

        Raises:
            Refusal: 429 if there is no room here either.
        """
        self._degradation.queue_was_full()
        if not vip and self._degradation.rules.answers["queue_full"] == "off":
            return None
        return await self.answer(backend, text, record, "queue_full", vip=vip)

    async def now(self, backend: Backend, text: str, record: RequestRecord, reason: Unheard, *, vip: bool) -> Judgement:
        """Return the CPU model's judgement, or that nobody judged.

        Raises:
            Refusal: 429 if there is no room, to whoever is no VIP.
        """
        try:
            said, tokens = await self._fallback.now(backend, text, reason, record, self._seconds)
        except NoRoom as full:
            if not vip:
                raise _come_again(full.retry_seconds) from None
            record.degraded(reason)
            return UNHEARD[reason]
        except TimeoutError:
            record.degraded("deadline")
            return UNHEARD["deadline"]
        except Exception as error:  # noqa: BLE001 - whatever a backend throws; said in the row and the log
            _log.warning("model error: %s", type(error).__name__)
            record.set(error_type=type(error).__name__)
            record.degraded("model_error")
            return UNHEARD["model_error"]
        record.set(tokens=tokens, confidence=said.confidence, label=said.label, model_version=backend.version)
        record.degraded(reason)
        return Judgement(said.label, said.confidence, reason)


def _come_again(seconds: int) -> Refusal:
    """Return the refusal of a request for which neither model has room."""
    message = f"neither the model nor the one in its place has room; ask again in {seconds} s"
    return Refusal(429, "queue_full", message, headers={"retry-after": str(seconds)})
