"""Watches the alerts of a running stack and keeps their timeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get_json

__all__ = ["AlertWatch", "false_alerts", "heard", "query_value", "recorded_firings"]

# bounds the timeline: a run with more changes than this is broken in another way
MAX_EVENTS = 5000
# meta alerts are no findings: the watchdog always fires
META = "meta"


@dataclass
class AlertWatch:
    """The alerts as Prometheus and Alertmanager show them, and each change since the watch began.

    Attributes:
        prometheus_url: Base URL.
        alertmanager_url: Base URL, None when there is none.
        timeline: One entry for each change: `at_unix`, `where`, `alertname`, `labels`, `state`.
    """

    prometheus_url: str
    alertmanager_url: str | None
    clock: Callable[[], float] = time.time
    timeline: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def look(self) -> list[dict[str, str]]:
        """Ask both once and note what changed.

        Returns:
            Labels of the alerts that fire in Prometheus now.
        """
        firing, seen = [], {}
        try:
            for alert in get_json(f"{self.prometheus_url}/api/v1/alerts")["data"]["alerts"]:
                labels = dict(alert["labels"])
                seen["prometheus", _key(labels)] = (labels, str(alert["state"]))
                if alert["state"] == "firing":
                    firing.append(labels)
        except (Unreachable, KeyError, TypeError):
            # Prometheus is asked again in a moment; the drill's own deadline bounds how long
            return []
        # inhibited ones as well: what is asked is whether it arrived
        for labels in self.notified():
            seen["alertmanager", _key(labels)] = (labels, "active")
        self._note(seen)
        return firing

    def notified(self) -> list[dict[str, str]]:
        """Return the labels of the alerts that Alertmanager holds as active."""
        if self.alertmanager_url is None:
            return []
        try:
            alerts = get_json(f"{self.alertmanager_url}/api/v2/alerts?active=true&silenced=false&inhibited=true")
            return [dict(alert["labels"]) for alert in alerts]
        except (Unreachable, KeyError, TypeError):
            return []

    def _note(self, seen: dict[tuple[str, str], tuple[dict[str, str], str]]) -> None:
        now = self.clock()
        for key, (labels, state) in seen.items():
            if self._known.get(key) != state:
                self._known[key] = state
                self._add(now, key[0], labels, state)
        for key in [key for key in self._known if key not in seen]:
            del self._known[key]
            self._add(now, key[0], dict(pair.split("=", 1) for pair in key[1].split("\x1f") if pair), "resolved")

    def _add(self, now: float, where: str, labels: dict[str, str], state: str) -> None:
        # the first events tell what happened; a flapping rule would only repeat itself
        if len(self.timeline) < MAX_EVENTS:
            entry = {"at_unix": round(now, 3), "where": where, "alertname": labels.get("alertname"), "state": state}
            self.timeline.append(entry | {"labels": labels})


def _key(labels: dict[str, str]) -> str:
    return "\x1f".join(f"{name}={value}" for name, value in sorted(labels.items()))


def query_value(prometheus_url: str, expression: str, at: float | None = None) -> float | None:
    """Return the first value of an instant query, or None when it has none or cannot be asked.

    Args:
        prometheus_url: Base URL.
        expression: PromQL.
        at: Evaluation time in seconds; now by default.
    """
    when = f"&time={at:.3f}" if at is not None else ""
    try:
        result = get_json(f"{prometheus_url}/api/v1/query?query={quote(expression)}{when}", 10.0)["data"]["result"]
        return float(result[0]["value"][1]) if result else None
    except (Unreachable, KeyError, TypeError, ValueError, IndexError):
        return None


def recorded_firings(prometheus_url: str, seconds: float) -> list[dict[str, Any]]:
    """Return the alerts, meta ones apart, of which Prometheus has a firing sample within the last seconds.

    Args:
        prometheus_url: Base URL.
        seconds: How far to look back.

    Returns:
        Entries as those of a timeline, without a time.

    Raises:
        CannotRun: If Prometheus does not answer: silence would be claimed where nobody could hear.
    """
    window = f"{max(1, round(seconds))}s"
    expression = f'count_over_time(ALERTS{{alertstate="firing", kind!="{META}"}}[{window}])'
    try:
        found = get_json(f"{prometheus_url}/api/v1/query?query={quote(expression)}", 10.0)["data"]["result"]
        labels = [dict(one["metric"]) for one in found]
    except (Unreachable, KeyError, TypeError, ValueError) as error:
        raise CannotRun(
            f"Prometheus does not tell which alerts fired: {error}", "read the stack's logs/prometheus.log"
        ) from error
    return [
        {
            "at_unix": None,
            "where": "prometheus",
            "alertname": one.get("alertname"),
            "state": "firing",
            "labels": one,
        }
        for one in labels
    ]


def heard(watch: AlertWatch, seconds: float) -> list[dict[str, Any]]:
    """Return the firings that are no meta alert: those that a watch saw, and those that only Prometheus recorded.

    Args:
        watch: What looked.
        seconds: How far to look back in what Prometheus recorded.

    Raises:
        CannotRun: If Prometheus does not answer.
    """
    seen = false_alerts(watch.timeline)
    names = {event["alertname"] for event in seen}
    # between two looks, or while a part was restarted, an alert may have come and gone
    return seen + [one for one in recorded_firings(watch.prometheus_url, seconds) if one["alertname"] not in names]


def false_alerts(timeline: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the firings in a timeline that are no meta alert: one entry for each time that one began to fire.

    Args:
        timeline: As `AlertWatch` keeps it.
    """
    return [
        event
        for event in timeline
        if event["where"] == "prometheus" and event["state"] == "firing" and event["labels"].get("kind") != META
    ]
