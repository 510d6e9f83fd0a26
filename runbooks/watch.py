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
from runbooks.unable import unable

__all__ = ["Tell", "TriageWatch"]

# A source that fails for a moment is given three chances; then the failure itself is the report.
MOST_TRIES: Final = 3

_log = logging.getLogger("runbooks")

Triage = Callable[[str, float], Mapping[str, Any]]
# Told each incident and its result, once the result is kept.
Tell = Callable[[Incident, Mapping[str, Any]], None]


class TriageWatch:
    """Works off an inbox.

    Args:
        inbox: Where incidents wait.
        store: Where reports go.
        triage: Given alert name and time to look at (unix seconds), returns the result.
        clock: Wall clock, unix seconds.
        retry_seconds: Pause after a failed try.
        tell: Hears of each result; must not wait for anybody.
    """

    def __init__(
        self,
        inbox: Inbox,
        store: ReportStore,
        triage: Triage,
        clock: Callable[[], float] = time.time,
        retry_seconds: float = 2.0,
        *,
        tell: Tell | None = None,
    ) -> None:
        self.inbox, self.store = inbox, store
        self.runs: Counter[str] = Counter({"named": 0, "abstained": 0, "failed": 0})
        self.last_seconds = 0.0
        self._triage, self._clock, self._retry_seconds = triage, clock, retry_seconds
        self._tell = tell
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
            try:
                incident = self.inbox.oldest(timeout_seconds=1.0)
                if incident is not None and not self._stopping.is_set():
                    self.work(incident)
            except Exception:  # noqa: BLE001 - the last door: without this thread no alert is looked at any more
                _log.exception("the triage thread stumbled, and goes on")
                self._stopping.wait(self._retry_seconds)

    def work(self, incident: Incident) -> None:
        """Triage one incident and keep the report; of one that fails again and again, a report that says so."""
        began = time.monotonic()
        started = datetime.fromtimestamp(self._clock(), UTC)
        try:
            # Not now but the alert's own time: after a restart the incident may be an hour old.
            until = min(self._clock(), incident.starts_at + AFTER_ALERT_SECONDS)
            result = dict(self._triage(incident.alert, until))
            self._keep(incident, result, started, time.monotonic() - began)
        # Whatever is wrong with one incident, its times as read from disk included, the next must still be looked at.
        except Exception as error:  # noqa: BLE001
            _log.exception("triage of %s failed", incident.alert)
            self._failed(incident, error, started, time.monotonic() - began)
            return
        self.runs["abstained" if result["abstained"] else "named"] += 1
        self._done(incident)

    def _keep(self, incident: Incident, result: Mapping[str, Any], started: datetime, seconds: float) -> None:
        """Store a result with what triggered it; one that the disk refuses is shown from memory."""
        self.last_seconds = seconds
        trigger = {
            "sender": incident.sender,
            "group_key": incident.group_key,
            "alerts": incident.alerts,
            "truncated": incident.truncated,
            "starts_at": _text_of(incident.starts_at),
        }
        whole = dict(result) | {"started": started.isoformat(), "took_s": round(seconds, 3), "trigger": trigger}
        try:
            kept = self.store.save(whole, started)
            _log.info("%s: %s, kept as %s", incident.alert, _said(result), kept["report"])
        except StoreError as error:
            kept = whole
            _log.warning("%s: %s; %s", incident.alert, _said(result), error)
        if self._tell is not None:
            try:
                self._tell(incident, kept)
            # The report is kept by now: a second triage would only make a second one.
            except Exception:  # noqa: BLE001
                _log.exception("%s: nobody could be told", incident.alert)

    def _failed(self, incident: Incident, error: Exception, started: datetime, seconds: float) -> None:
        """Try again later; after the last try the failure itself is the report, for its alert is not sent again."""
        self._tries[incident.name] += 1
        if (tries := self._tries[incident.name]) < MOST_TRIES:
            self._stopping.wait(self._retry_seconds)
            return
        try:
            self._keep(incident, unable(incident.alert, started.timestamp(), tries, error), started, seconds)
        finally:
            self.runs["failed"] += 1
            self._done(incident)

    def _done(self, incident: Incident) -> None:
        self._tries.pop(incident.name, None)
        self.inbox.done(incident)


def _text_of(seconds: float) -> str | None:
    """Return unix seconds as text; None for what is no time: a file of the inbox may hold anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _said(result: Mapping[str, Any]) -> str:
    return "no cause named" if result["abstained"] else str(result["verdict"]["slug"])
