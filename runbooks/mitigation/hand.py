"""The triage service's hand: has switched-on mitigations carried out after a verdict, and never holds triage up.

Memory    at most `MOST_WAITING` verdicts wait; more are said to be left out.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runbooks.mitigation.told import said
from runbooks.pages import Page
from runbooks.store import ReportStore

__all__ = ["CONSOLE", "MitigationHand"]

MOST_WAITING: Final = 4
# Beyond the time of the re-check: to stop a part, to start it, to undo.
EXTRA_SECONDS: Final = 240.0
# The console knows the stack; a process of its own, because what is restarted may be slow, and triage may not.
CONSOLE: Final = (sys.executable, "-P", "-m", "inferdeck")

_log = logging.getLogger("runbooks")

# Told what was done, in the shape of a report's `mitigated`; must not wait for anybody.
Tell = Callable[[Mapping[str, Any]], None]


class _Waiting(NamedTuple):
    alert: str
    report_id: str | None
    tell: Tell


class MitigationHand:
    """Hears of each verdict, and has the console carry out what is switched on for it.

    Args:
        enabled: The ids that are switched on.
        pages: Runbooks by slug.
        store: Where the reports are; what was done is added to them.
        recheck_seconds: How long a re-check may take.
        console: Program and arguments of the console.
    """

    def __init__(
        self,
        enabled: frozenset[str],
        pages: Mapping[str, Page],
        store: ReportStore,
        recheck_seconds: float,
        console: Sequence[str] = CONSOLE,
    ) -> None:
        self._enabled, self._pages, self._store = enabled, pages, store
        self._limit_seconds = recheck_seconds + EXTRA_SECONDS
        self._console = tuple(console)
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="mitigation", daemon=True)

    def start(self) -> None:
        """Begin to listen; without anything switched on it does nothing at all."""
        if self._enabled:
            self._thread.start()

    def stop(self) -> None:
        """End; a mitigation at hand is left to end by itself, and the journal says how far it got."""
        if self._thread.is_alive():
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(1.0)

    def hear(self, report: Mapping[str, Any], tell: Tell = lambda _told: None) -> bool:
        """Take a kept report; return whether something will be tried.

        Args:
            report: A triage's result with its `id`.
            tell: Hears what was done, or why nothing was although it is switched on.
        """
        page = None if report["abstained"] else self._pages.get(str(report["verdict"]["slug"]))
        if page is None or not any(one.safe and one.id in self._enabled for one in page.mitigations):
            return False
        report_id = report.get("id")
        one = _Waiting(page.alert, str(report_id) if report_id else None, tell)
        try:
            self._waiting.put_nowait(one)
        except queue.Full:
            self._done(one, {"refused": f"{MOST_WAITING} others wait", "runs": []})
            return False
        return True

    def _run(self) -> None:
        while (one := self._waiting.get()) is not None:
            try:
                self._done(one, self._carry_out(one.alert, one.report_id))
            except Exception:  # noqa: BLE001 - the last door: without this thread nothing is mended any more
                _log.exception("mitigation of %s stumbled", one.alert)

    def _done(self, one: _Waiting, told: Mapping[str, Any]) -> None:
        if one.report_id:
            self._note(one.report_id, told)
        _log.info("%s: %s", one.alert, said(told))
        one.tell(told)

    def _carry_out(self, alert: str, report_id: str | None) -> dict[str, Any]:
        argv = [*self._console, "mitigate", alert, "--auto", "--json"]
        argv += ["--report", report_id] if report_id else []
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self._limit_seconds, check=False
            )
            result = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return {"refused": f"no end within {self._limit_seconds:.0f} s; see `inferdeck mitigate --log`", "runs": []}
        except (OSError, ValueError) as error:
            return {"refused": f"the console did not answer ({type(error).__name__})", "runs": []}
        return {"refused": result.get("refused"), "runs": result.get("runs") or []}

    def _note(self, report_id: str, told: Mapping[str, Any]) -> None:
        if not self._store.amend(report_id, lambda report: report.update(mitigated=dict(told))):
            _log.warning("report %s could not be added to", report_id)
