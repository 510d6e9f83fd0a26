"""The thread that turns waiting incidents into kept reports, one after the other."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from runbooks.engine import AFTER_ALERT_SECONDS
from runbooks.inbox import Inbox, Incident
from runbooks.store import ReportStore, StoreError

__all__ = ["TriageWatch"]

# A source that fails for a moment is given three chances; then the failure itself is the report.
MOST_TRIES: Final = 3

_log = logging.getLogger("runbooks")

Triage = Callable[[str, float], Mapping[str, Any]]


class TriageWatch:
    """Works off an inbox.

    Args:
        inbox: Where incidents wait.
        store: Where reports go.
        triage: Given alert name and time to look at (unix seconds), returns the result.
        clock: Wall clock, unix seconds.
        retry_seconds: Pause after a failed try.
    """

    def __init__(
        self,
        inbox: Inbox,
        store: ReportStore,
        triage: Triage,
        clock: Callable[[], float] = time.time,
        retry_seconds: float = 2.0,
    ) -> None:
        self.inbox, self.store = inbox, store
        self.runs: Counter[str] = Counter({"named": 0, "abstained": 0, "failed": 0})
        self.last_seconds = 0.0
        self._triage, self._clock, self._retry_seconds = triage, clock, retry_seconds
        self._tries: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="triage", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Stop after the triage at hand; what still waits stays in the inbox."""
        self._stopping.set()
        with self.inbox.arrived:
            self.inbox.arrived.notify_all()
        self._thread.join(timeout_seconds)

    @property
    def alive(self) -> bool:
        """Whether the thread works."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            incident = self.inbox.oldest(timeout_seconds=1.0)
            if incident is not None and not self._stopping.is_set():
                self.work(incident)

    def work(self, incident: Incident) -> None:
        """Triage one incident and keep the report."""
        began = time.monotonic()
        started = datetime.fromtimestamp(self._clock(), UTC)
        try:
            # Not now but the alert's own time: after a restart the incident may be an hour old.
            until = min(self._clock(), incident.starts_at + AFTER_ALERT_SECONDS)
            result = dict(self._triage(incident.alert, until))
        except Exception:  # noqa: BLE001 - whatever is wrong with one incident, the next must still be looked at
            _log.exception("triage of %s failed", incident.alert)
            self._failed(incident)
            return
        self.last_seconds = time.monotonic() - began
        trigger = {
            "sender": incident.sender,
            "group_key": incident.group_key,
            "alerts": incident.alerts,
            "truncated": incident.truncated,
            "starts_at": datetime.fromtimestamp(incident.starts_at, UTC).isoformat(),
        }
        result |= {"started": started.isoformat(), "took_s": round(self.last_seconds, 3), "trigger": trigger}
        try:
            kept = self.store.save(result, started)
            _log.info("%s: %s, kept as %s", incident.alert, _said(result), kept["report"])
        except StoreError as error:
            _log.warning("%s: %s; %s", incident.alert, _said(result), error)
        self.runs["abstained" if result["abstained"] else "named"] += 1
        self.inbox.done(incident)

    def _failed(self, incident: Incident) -> None:
        self._tries[incident.name] += 1
        if self._tries[incident.name] >= MOST_TRIES:
            del self._tries[incident.name]
            self.runs["failed"] += 1
            self.inbox.done(incident)
        else:
            self._stopping.wait(self._retry_seconds)


def _said(result: Mapping[str, Any]) -> str:
    return "no cause named" if result["abstained"] else str(result["verdict"]["slug"])
