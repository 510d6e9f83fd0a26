"""Incidents that wait for their triage: kept on disk until a report exists, each alert taken once, bounded in number.

Memory    at most `most` waiting incidents (about 2 kB each) and the keys of the last 5,000 alerts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from probes.private_file import write_private
from runbooks.payloads import Alert, Notification

__all__ = ["Inbox", "InboxFullError", "Incident"]

# Alertmanager repeats a firing alert every few hours; a day of 500 alerts at a time stays known.
MOST_KEYS: Final = 5000

_log = logging.getLogger("runbooks")


class InboxFullError(Exception):
    """No more incidents can wait; the sender should try again."""


@dataclass(frozen=True)
class Incident:
    """One incident: all alerts of one name in one group, however many they are.

    Attributes:
        name: File name; the same alerts always get the same.
        alert: Alert's name.
        group_key: The sender's group.
        sender: alertmanager or grafana.
        starts_at: First start among its alerts, unix seconds.
        alerts: How many alerts it stands for.
        truncated: How many more the sender left out.
        keys: Identities of its alerts.
        panel_url: Panel or dashboard that the sender links to; empty for none.
    """

    name: str
    alert: str
    group_key: str
    sender: str
    starts_at: float
    alerts: int
    truncated: int
    keys: tuple[str, ...]
    panel_url: str = ""


class Inbox:
    """The folder of waiting incidents.

    Args:
        folder: Where they lie; made (0700) when absent. Without one that can be written they wait in memory alone.
        most: How many may wait.
    """

    def __init__(self, folder: Path, most: int = 100) -> None:
        self.folder = folder
        self._most = most
        self._lock = threading.Lock()
        self._waiting: dict[str, Incident] = {}
        self._known: dict[str, None] = {}
        self.write_errors = 0
        self.arrived = threading.Condition(self._lock)
        self._load()

    def __len__(self) -> int:
        return len(self._waiting)

    def accept(self, notification: Notification) -> list[Incident]:
        """Take the notification's firing alerts that were not taken before, one incident per alert's name.

        Resolved and meta alerts make no incident.

        Raises:
            InboxFullError: If they do not fit; then none is taken, and the whole notification can be sent again.
        """
        with self._lock:
            groups: dict[str, list[Alert]] = {}
            for alert in notification.firing():
                if alert.key not in self._known:
                    groups.setdefault(alert.name, []).append(alert)
            if len(self._waiting) + len(groups) > self._most:
                raise InboxFullError(f"{len(self._waiting)} incidents wait already")
            taken = [_incident(notification, name, alerts) for name, alerts in groups.items()]
            for incident in taken:
                self._waiting[incident.name] = incident
                self._known |= dict.fromkeys(incident.keys)
                # The incident before the keys: after a crash between them it is sent again under the same name.
                self._write(f"{incident.name}.incident", asdict(incident))
            if taken:
                self._trim()
                self._write("known.json", list(self._known))
                self.arrived.notify_all()
            return taken

    def oldest(self, timeout_seconds: float) -> Incident | None:
        """Return the incident that waits longest, waiting for one at most so long; it stays until it is done."""
        with self._lock:
            if not self._waiting:
                self.arrived.wait(timeout_seconds)
            return next(iter(self._waiting.values()), None)

    def done(self, incident: Incident) -> None:
        """Forget an incident whose report is kept."""
        with self._lock:
            self._waiting.pop(incident.name, None)
            with contextlib.suppress(OSError):
                (self.folder / f"{incident.name}.incident").unlink(missing_ok=True)

    def _load(self) -> None:
        """Take up what waited when the process ended; what cannot be read is left out and said."""
        for path in sorted(self.folder.glob("*.incident")) if self.folder.is_dir() else ():
            try:
                known = json.loads(path.read_bytes())
                incident = Incident(**{**known, "keys": tuple(known["keys"]), "name": path.stem})
            except (OSError, ValueError, TypeError, KeyError) as error:
                _log.warning("waiting incident %s left out: %s", path.name, error)
                continue
            self._waiting[incident.name] = incident
            self._known |= dict.fromkeys(incident.keys)
        with contextlib.suppress(OSError, ValueError, TypeError):
            self._known = dict.fromkeys(map(str, json.loads((self.folder / "known.json").read_bytes()))) | self._known

    def _trim(self) -> None:
        for key in list(self._known)[: max(0, len(self._known) - MOST_KEYS)]:
            del self._known[key]

    def _write(self, name: str, content: Any) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # An incident that was accepted must be there after a power cut.
            write_private(self.folder / name, json.dumps(content).encode(), flush=True)
        except OSError as error:
            # The triage itself needs no disk: it goes on from memory, and only a restart would lose it.
            self.write_errors += 1
            _log.warning("incident not on disk (%s): %s; set INFERDECK_STATE_DIR", self.folder, error.strerror)


def _incident(notification: Notification, name: str, alerts: Sequence[Alert]) -> Incident:
    keys = tuple(alert.key for alert in alerts)
    digest = hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:16]
    starts_at = min(alert.starts_at for alert in alerts)
    return Incident(
        # Sorted by name they are sorted by start.
        name=f"{max(0, int(starts_at)):011d}-{digest}",
        alert=name,
        group_key=notification.group_key,
        sender=notification.sender,
        starts_at=starts_at,
        alerts=len(alerts),
        truncated=notification.truncated,
        keys=keys,
        panel_url=next((alert.panel_url for alert in alerts if alert.panel_url), ""),
    )
