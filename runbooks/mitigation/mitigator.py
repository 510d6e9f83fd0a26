"""Carries out the mitigations of an alert's page, one after the other, until it is over; or says why it does not."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from runbooks.mitigation.action import Action, ActionFailedError
from runbooks.mitigation.journal import Journal, JournalError, since
from runbooks.mitigation.recovery import POLL_SECONDS, wait_recovered
from runbooks.pages import Mitigation, Page

__all__ = ["Asker", "Limits", "Mitigator", "Refused"]

_T = TypeVar("_T")

HOUR_SECONDS: Final = 3600.0


class Refused(Exception):  # noqa: N818  # reads as the sentence it is
    """Nothing was done; the text says why, and what to do instead."""


@dataclass(frozen=True)
class Limits:
    """How often an hour.

    Attributes:
        per_id: One mitigation.
        total: All together.
    """

    per_id: int = 2
    total: int = 4


@dataclass(frozen=True)
class Asker:
    """Who wants it, and why.

    Attributes:
        who: "automatic", or the user's number.
        why: One sentence.
        report: Id of the triage's report; None without one.
        enabled: The ids that are switched on, for who is no person; None for a person, who may do all.
    """

    who: str
    why: str
    report: str | None = None
    enabled: frozenset[str] | None = None


class Mitigator:
    """One stack's mitigations.

    Args:
        journal: What is written down.
        actions: Id -> what it does here; what this stack cannot do is not among them.
        pages: Runbooks by slug.
        holds: Whether an alert's expression is true now; None when that cannot be told.
        limits: How often.
        recheck_seconds: How long recovery may take.
        clock: Wall clock, unix seconds.
        sleep: Waits so many seconds.
        tick: Monotonic seconds.
    """

    def __init__(
        self,
        journal: Journal,
        actions: Mapping[str, Action],
        pages: Mapping[str, Page],
        holds: Callable[[str], bool | None],
        *,
        limits: Limits = Limits(),
        recheck_seconds: float = 90.0,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        self.journal, self.actions = journal, actions
        self._pages = {page.alert: page for page in pages.values()}
        self._holds, self._limits, self._recheck_seconds = holds, limits, recheck_seconds
        self._clock, self._sleep, self._tick = clock, sleep, tick

    def chosen(self, alert: str, asker: Asker) -> list[tuple[Mitigation, Action]]:
        """Return what would be carried out for an alert, in order.

        Raises:
            Refused: If there is nothing that may be.
        """
        page = self._pages.get(alert)
        if page is None:
            raise Refused(f"no runbook for {alert!r}; `inferdeck mitigate --list` shows what can be carried out")
        told = [one for one in page.mitigations if one.id]
        if not told:
            raise Refused(f"{page.path} has no mitigation that a machine can carry out: read it, and act by hand")
        allowed = [one for one in told if asker.enabled is None or (one.safe and one.id in asker.enabled)]
        if not allowed:
            names = ", ".join(one.id if one.safe else f"{one.id} (not safe)" for one in told)
            raise Refused(f"switched off: INFERDECK_TRIAGE_MITIGATE names none of {names}")
        found = [(one, self.actions[one.id]) for one in allowed if one.id in self.actions]
        if not found:
            raise Refused(f"this stack cannot carry out {', '.join(one.id for one in allowed)}")
        return found

    def mitigate(self, alert: str, asker: Asker) -> list[dict[str, Any]]:
        """Carry out what the alert's page offers until the alert's expression is no longer true.

        Args:
            alert: The alert's name.
            asker: Who, and why.

        Returns:
            One dict per mitigation that was begun: run, id, alert, outcome (recovered, not_recovered, unknown, failed),
            detail, and undo (None, or what became of taking it back).

        Raises:
            Refused: If nothing was done.
        """
        chosen = self.chosen(alert, asker)
        holds = self._holds(alert)
        if holds:
            # Twice: right after a start, for want of the first samples, much is true for a moment.
            self._sleep(POLL_SECONDS)
            holds = self._holds(alert)
        if holds is False:
            raise Refused(f"{alert}'s expression is not true now: there is nothing to mend")
        if holds is None and asker.enabled is not None:
            raise Refused(f"it cannot be told whether {alert} still holds, so recovery could not be seen either")
        return self._alone(lambda: self._in_turn(alert, chosen, asker))

    def undo(self, run: str, asker: Asker) -> dict[str, Any]:
        """Take back what a run did.

        Raises:
            Refused: If there is no such run, it was taken back already, or nothing can.
        """
        try:
            found = self.journal.runs().get(run)
        except JournalError as error:
            raise Refused(str(error)) from error
        if found is None:
            raise Refused(f"no run {run!r}; `inferdeck mitigate --log` lists them")
        if found["undo"] is not None and found["undo"].get("outcome") != "failed":
            raise Refused(f"{run} was taken back already: {found['undo'].get('detail', '')}")
        action = self.actions.get(str(found["id"]))
        if action is None or action.undo is None:
            raise Refused(f"nothing can take {found['id']} back")
        memo = (found["result"] or {}).get("memo") or {}
        return self._alone(lambda: self._taken_back(run, action, memo, asker))

    def _alone(self, work: Callable[[], _T]) -> _T:
        try:
            with self.journal.alone() as alone:
                if not alone:
                    raise Refused("another mitigation is being carried out; `inferdeck mitigate --log` shows it")
                self._close_interrupted()
                return work()
        except JournalError as error:
            raise Refused(f"nothing is done that cannot be written down: {error}") from error

    def _close_interrupted(self) -> None:
        """Say of runs that were begun and never ended that their process ended: we hold the lock, so nobody works."""
        for run, found in self.journal.runs().items():
            if found["result"] is None:
                text = "its process ended in the middle; whether it was done is not known"
                self.journal.append("result", run=run, outcome="interrupted", detail=text)

    def _in_turn(self, alert: str, chosen: list[tuple[Mitigation, Action]], asker: Asker) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        for _, action in chosen:
            limit = self._over_limit(action.id)
            if limit:
                if not results:
                    raise Refused(limit)
                break
            results.append(self._one(alert, action, asker))
            if results[-1]["outcome"] in ("recovered", "unknown"):
                break
        return results

    def _over_limit(self, action_id: str) -> str:
        recent = since(self.journal.runs(), self._clock() - HOUR_SECONDS)
        of_id = sum(1 for run in recent if run.get("id") == action_id)
        if of_id >= self._limits.per_id:
            return f"{action_id} was carried out {of_id} times within the hour: it does not help, look for the cause"
        if len(recent) >= self._limits.total:
            return f"{len(recent)} mitigations within the hour: more would hide what is wrong"
        return ""

    def _one(self, alert: str, action: Action, asker: Asker) -> dict[str, Any]:
        run = secrets.token_hex(4)
        # On the disk before anything is done: a crash in the middle must leave a trace.
        self.journal.append(
            "intent", run=run, id=action.id, alert=alert, who=asker.who, why=asker.why, report=asker.report
        )
        memo: Mapping[str, Any] = {}
        try:
            done = action.run()
            detail, memo = done.detail, done.memo
        except ActionFailedError as error:
            outcome, detail = "failed", str(error)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the journal must say how it ended
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        else:
            over = wait_recovered(lambda: self._holds(alert), self._recheck_seconds, sleep=self._sleep, tick=self._tick)
            outcome = {True: "recovered", False: "not_recovered", None: "unknown"}[over]
        detail += self._noted("result", run=run, outcome=outcome, detail=detail, memo=dict(memo))
        undo = self._undo_in_vain(run, action, memo, asker) if outcome == "not_recovered" else None
        return {"run": run, "id": action.id, "alert": alert, "outcome": outcome, "detail": detail, "undo": undo}

    def _undo_in_vain(self, run: str, action: Action, memo: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
        """Take back what did not help; what cannot be taken back is said."""
        if action.undo is None:
            return {"outcome": "impossible", "detail": f"nothing can take {action.id} back"}
        return self._taken_back(run, action, memo, asker)

    def _taken_back(self, run: str, action: Action, memo: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
        assert action.undo is not None  # noqa: S101  # for the type checker; both callers have looked
        self.journal.append("undo_intent", run=run, who=asker.who)
        try:
            outcome, detail = "undone", action.undo(memo)
        except Exception as error:  # noqa: BLE001 - as above
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        detail += self._noted("undo_result", run=run, outcome=outcome, detail=detail)
        return {"outcome": outcome, "detail": detail}

    def _noted(self, event: str, **told: Any) -> str:
        """Write down how it ended; that this failed is said, for what was done cannot be undone by it."""
        try:
            self.journal.append(event, **told)
        except JournalError as error:
            return f" (not written down: {error})"
        return ""
