"""A request's way through two versions: to the one it is for, to the stable one when that fails, and the comparison.

The canary has queues and threads of its own, so that a slow one holds up nobody who is not its own. It gets half of the
deadline; whatever goes wrong, the stable version answers in what is left. The comparison comes after the answer was
sent, and is left out when too many are under way.

Memory: eight comparisons, and the queues of the canary.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.backend import Answer, Backend, Logits, NotANumber, infer, pad
from service.body_limit import Disconnected
from service.canary.choice import HEADER, Role, header_of, in_share
from service.canary.versions import Versions
from service.errors import Refusal
from service.executor import Executor
from service.long_texts import merged, rows_of
from service.postprocess.confidence import softmax
from service.recording import NO_RECORD, RequestRecord
from service.scheduler.dispatcher import Scheduler
from service.scheduler.patience import Receive
from service.scheduler.ticket import DeadlineExceeded, MemoryShort, Overloaded, Ticket

__all__ = ["COMPARISONS", "FAILURES", "Canary", "Pick"]

FAILURES: Final = ("nan", "error", "late", "full")
"""Why another version answered than the one that was asked."""
COMPARISONS: Final = ("same", "flipped", "shed", "failed")
_MOST_COMPARISONS: Final = 8
_COMPARE_SECONDS: Final = 1.0
_NAME_CHARACTERS: Final = 64

_log = logging.getLogger("service.canary")

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Pick:
    """Which version a request is for.

    Attributes:
        role: The version.
        backend: Its model.
        named: Whether the request named it.
    """

    role: Role
    backend: Backend
    named: bool


class Canary:
    """Asks the canary, and compares.

    Args:
        versions: Where the canary is found.
        scheduler: Its own queues.
        comparing: The thread that runs the stable version for comparison.
        compare_share: Share of the canary's answers that are compared.
        draw: Returns a number from 0 to 1.
    """

    def __init__(
        self,
        versions: Versions,
        scheduler: Scheduler,
        comparing: Executor,
        compare_share: float,
        draw: Callable[[], float],
    ) -> None:
        self.versions = versions
        self._scheduler = scheduler
        self._comparing = comparing
        self._compare_share = compare_share
        self._draw = draw
        self._under_way = 0

    def pick(self, headers: Headers, stable: Backend, *, vip: bool) -> Pick | None:
        """Return which version a request is for; None while there is but one and none was named.

        A VIP goes to the canary only by name.

        Raises:
            Refusal: 404 if it names a version that is not served.
        """
        canary = self.versions.backend
        named = header_of(headers, HEADER)
        if named is not None:
            return self._named(named, stable, canary)
        share = self.versions.share
        if canary is None or share <= 0.0:
            return None
        if not vip and in_share(headers, share, self.versions.model):
            return Pick("canary", canary, named=False)
        return Pick("stable", stable, named=False)

    @staticmethod
    def _named(named: bytes, stable: Backend, canary: Backend | None) -> Pick:
        name = named[: _NAME_CHARACTERS + 1].decode("latin-1").strip()
        if name in {"stable", stable.version}:
            return Pick("stable", stable, named=True)
        known = f"stable ({stable.version})"
        if canary is not None:
            if name in {"canary", canary.version}:
                return Pick("canary", canary, named=True)
            known += f", canary ({canary.version})"
        raise Refusal(404, "not_found", f"no such version of the model is served; there is {known}")

    async def run(
        self, pick: Pick, stable: Backend, ticket: Ticket, receive: Receive | None, scheduler: Scheduler
    ) -> Answer:
        """Return the answer of the version that a request is for, or of the stable one when that has none.

        Args:
            pick: The version.
            stable: The stable version.
            ticket: The request's ticket: where it waits and until when, and its row.
            receive: The ASGI callable, asked whether the client is still there.
            scheduler: The stable version's.

        Raises:
            RateLimited, Overloaded, DeadlineExceeded, Disconnected: As for `Scheduler.run`.
            Exception: What the stable version raised.
        """
        ticket.record.set(version_role=pick.role)
        if pick.role == "stable":
            return await self._stable(stable, ticket, receive, scheduler)
        scheduler.admit(ticket)
        found = await self._canary(pick.backend, ticket, receive)
        if found is not None:
            return found
        answer = await scheduler.run(stable, ticket, receive, admitted=True)
        # Who named a version is told that another answered; of a share nobody promised anything.
        return Answer(answer.logits, answer.degraded or "canary", answer.version) if pick.named else answer

    async def _stable(self, stable: Backend, ticket: Ticket, receive: Receive | None, scheduler: Scheduler) -> Answer:
        judge = self.versions.judge
        try:
            answer = await scheduler.run(stable, ticket, receive)
        except (Overloaded, MemoryShort, Disconnected):
            raise
        except Exception:
            judge.failed("stable")
            raise
        judge.answered("stable", self._held(ticket))
        return answer

    async def _canary(self, canary: Backend, mine: Ticket, receive: Receive | None) -> Answer | None:
        """Return the canary's answer; None if it has none, and then the row says why.

        Args:
            canary: Its model.
            mine: The request's ticket for the stable version: where it waits and until when, and its row.
            receive: The ASGI callable, asked whether the client is still there.

        Raises:
            Disconnected: If the client went away.
        """
        scheduler, record, judge = self._scheduler, mine.record, self.versions.judge
        left = (mine.deadline_ns - scheduler.clock()) / 2e9
        ticket = scheduler.new_ticket(mine.text, record, mine.lane, left)
        try:
            answer = await scheduler.run(canary, ticket, receive, admitted=True)
        except Disconnected:
            raise
        except (Overloaded, MemoryShort):
            # Its queue is too short for its share: no fault of the model.
            record.set(version_failed="full")
            return None
        except DeadlineExceeded:
            because = "late"
        except NotANumber:
            because = "nan"
        except Exception as error:  # noqa: BLE001 - whatever a foreign model throws; the row says so
            _log.info("the canary failed: %s", type(error).__name__)
            because = "error"
        else:
            judge.answered("canary", self._held(ticket))
            mine.tokens, mine.waited_ns, mine.batch_id = ticket.tokens, ticket.waited_ns, ticket.batch_id
            return answer
        judge.failed("canary")
        record.set(version_failed=because)
        return None

    def _held(self, ticket: Ticket) -> float:
        """Return the seconds from a thread's taking the request to now."""
        return max(0.0, (self._scheduler.clock() - ticket.entered_ns - ticket.waited_ns) / 1e9)

    def comparison(
        self, pick: Pick, stable: Backend, text: str, answer: Answer, record: RequestRecord
    ) -> Callable[[], Awaitable[None]] | None:
        """Return what compares an answer of the canary with the stable version's, once it was sent; None mostly.

        Args:
            pick: The version that was asked.
            stable: The stable version.
            text: What both read.
            answer: What came.
            record: The request's row, which ends after it.
        """
        canary, logits = pick.backend, answer.logits[0]
        if pick.role != "canary" or answer.version != canary.version or self._draw() >= self._compare_share:
            return None

        async def compare() -> None:
            if self._under_way >= _MOST_COMPARISONS:
                record.set(canary_comparison="shed")
                return
            self._under_way += 1
            try:
                other = await asyncio.wait_for(self._stable_logits(stable, text), _COMPARE_SECONDS)
                self._note(stable, canary, logits, other, record)
            except Exception as error:  # noqa: BLE001 - the answer is out; a comparison may fail and says so
                _log.info("a comparison failed: %s", type(error).__name__)
                record.set(canary_comparison="failed")
            finally:
                self._under_way -= 1

        return compare

    async def _stable_logits(self, stable: Backend, text: str) -> Logits:
        future: asyncio.Future[Logits] = asyncio.get_running_loop().create_future()

        def work() -> Logits:
            found = stable.encode(text)
            ids, mask = pad(rows_of(found))
            logits: Logits = merged(infer(stable, ids, mask, NO_RECORD, _COMPARE_SECONDS).logits, found, stable)[0]
            return logits

        def settle(found: Logits | None, error: Exception | None) -> None:
            if future.done():
                return
            if found is None:
                future.set_exception(error or RuntimeError("no result"))
            else:
                future.set_result(found)

        self._comparing.post(work, settle)
        return await future

    def _note(self, stable: Backend, canary: Backend, mine: Logits, other: Logits, record: RequestRecord) -> None:
        mine_p = np.array(softmax(mine.tolist(), canary.temperature))
        other_p = np.array(softmax(other.tolist(), stable.temperature))
        flipped = bool(mine_p.argmax() != other_p.argmax())
        self.versions.judge.compared(flipped=flipped)
        record.set(
            canary_comparison="flipped" if flipped else "same",
            canary_difference=flipped,
            # How far apart the two are as distributions, 0 to 1.
            canary_distance=float(np.abs(mine_p - other_p).sum() / 2),
        )
