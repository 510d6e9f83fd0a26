"""Starts an investigation when an alert about data has been triaged; triage never waits for it.

Bounded   one at a time, one more waits; each is a process of its own, at low priority, stopped after five minutes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runbooks.mitigation.hand import CONSOLE
from runbooks.store import ReportStore

__all__ = ["ALERTS", "SLUGS", "InvestigationHand"]

ALERTS: Final = frozenset({"ConfidenceP95Falls", "ContractViolations", "PreprocessMismatch"})
"""Alerts that ask what of the traffic changed, whatever triage names."""
SLUGS: Final = frozenset({"contract_violations", "preprocess_mismatch", "input_drift", "confidence_fall"})
"""Causes that ask for it, whatever alert led there."""
WINDOW: Final = "1d"
SECONDS_MAX: Final = 300.0

_log = logging.getLogger("runbooks")


class InvestigationHand:
    """Hears of each kept report.

    Args:
        store: Where reports are; what came of an investigation is added to them.
        enabled: Whether any is started.
        console: Program and arguments of the console.
        seconds_max: How long one may take.
    """

    def __init__(
        self,
        store: ReportStore,
        *,
        enabled: bool = True,
        console: Sequence[str] = CONSOLE,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        self._store, self._enabled, self._console = store, enabled, tuple(console)
        self._seconds_max = seconds_max
        self._waiting: queue.Queue[str | None] = queue.Queue(1)
        self._running: subprocess.Popen[str] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="investigation", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        if self._enabled:
            self._thread.start()

    def stop(self) -> None:
        """End, and end the investigation at hand: it can be asked for again at any time."""
        self._stopping.set()
        if self._thread.is_alive():
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            running = self._running
            if running is not None:
                running.terminate()
            self._thread.join(5.0)

    @property
    def working(self) -> bool:
        """Whether its thread lives."""
        return self._thread.is_alive()

    def hear(self, report: Mapping[str, Any]) -> bool:
        """Take a kept report; return whether an investigation will be started for it.

        Args:
            report: A triage's result with its `id`.
        """
        slug = None if report["abstained"] else report["verdict"]["slug"]
        report_id = report.get("id")
        if not self._enabled or not report_id or not (report.get("alert") in ALERTS or slug in SLUGS):
            return False
        try:
            self._waiting.put_nowait(str(report_id))
        except queue.Full:
            self._note(str(report_id), {"refused": "another one runs and one waits; run `inferdeck investigate`"})
            return False
        return True

    def _run(self) -> None:
        while (report_id := self._waiting.get()) is not None and not self._stopping.is_set():
            try:
                self._investigate(report_id)
            except Exception:  # noqa: BLE001 - the last door: without this thread nothing is investigated any more
                _log.exception("the investigation for %s stumbled", report_id)

    def _investigate(self, report_id: str) -> None:
        complaint = "it could not be started"
        argv = ["nice", "-n", "10", *self._console, "investigate", "--since", WINDOW, "--report", report_id, "--json"]
        try:
            self._running = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            with self._running as running:
                try:
                    out, complaint = running.communicate(timeout=self._seconds_max)
                except subprocess.TimeoutExpired:
                    running.kill()
                    self._note(report_id, {"refused": f"no end within {self._seconds_max:.0f} s"})
                    return
            verdict = json.loads(out)["verdict"]
        except (OSError, ValueError, KeyError, TypeError):
            # Its own line says why and names the mend.
            lines = complaint.strip().splitlines() or ["no answer"]
            self._note(report_id, {"refused": lines[-1][:300]})
            return
        finally:
            self._running = None
        # The command itself has added answer and page to the report.
        _log.info("investigation for %s: %s", report_id, verdict["summary"])

    def _note(self, report_id: str, told: Mapping[str, Any]) -> None:
        _log.warning("no investigation for %s: %s", report_id, told["refused"])
        if not self._store.amend(report_id, lambda report: report.update(investigation=dict(told))):
            _log.warning("report %s could not be added to", report_id)
