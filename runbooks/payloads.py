"""Notifications of Alertmanager (version 4) and Grafana (version 1): strict in what matters, tolerant of the rest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["MOST_ALERTS", "MOST_BYTES", "Alert", "Notification", "PayloadError", "parse_payload", "read_payload"]

# 500 alerts with long annotations fit twice; more is no notification.
MOST_BYTES: Final = 2 * 2**20
MOST_ALERTS: Final = 1000
MOST_TEXT: Final = 1000
VERSIONS: Final[Mapping[str, str]] = {"4": "alertmanager", "1": "grafana"}
# Alerts with this label are about the alerting itself and start no triage.
META_KIND: Final = "meta"
# `inferdeck selftest` posts an alert with this slug, and a label of the same name that holds the run's id.
SELFTEST: Final = "selftest"
_RUN_ID: Final = re.compile(r"[0-9a-f]{8,32}")
# Below Grafana's address, which the rules do not know.
_PANEL_PATH: Final = re.compile(r"d/[A-Za-z0-9_-]{1,40}\?viewPanel=[0-9]{1,6}")


class PayloadError(ValueError):
    """A payload that is no notification we know; the text says what is wrong."""


@dataclass(frozen=True)
class Alert:
    """One alert of a notification.

    Attributes:
        name: Label `alertname`; empty when there is none.
        status: firing or resolved.
        labels: All labels.
        annotations: All annotations.
        starts_at: Unix seconds.
        ends_at: Unix seconds; None while it fires.
        fingerprint: The sender's id of the label set.
        panel_url: The panel, else the dashboard, that its sender links to, or its path below Grafana's address as the
            annotation `dashboard_url` says; empty for none.
    """

    name: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: float
    ends_at: float | None
    fingerprint: str
    panel_url: str = ""

    @property
    def key(self) -> str:
        """Identity of this state of this alert: a repeated notification has the same."""
        return f"{self.fingerprint}|{self.starts_at:.3f}|{self.status}"

    @property
    def is_meta(self) -> bool:
        """Whether it is about the alerting itself (Watchdog)."""
        return self.labels.get("kind") == META_KIND or self.name == "Watchdog"

    @property
    def selftest_id(self) -> str | None:
        """Id of the self-test that sent it; None when it is a real alert."""
        run = self.labels.get(SELFTEST, "")
        return run if self.labels.get("slug") == SELFTEST and _RUN_ID.fullmatch(run) else None


@dataclass(frozen=True)
class Notification:
    """One notification.

    Attributes:
        sender: alertmanager or grafana.
        status: Status of the group; single alerts may differ.
        group_key: The sender's id of the group.
        alerts: The alerts, as sent.
        truncated: How many alerts the sender left out.
    """

    sender: str
    status: str
    group_key: str
    alerts: tuple[Alert, ...]
    truncated: int

    def firing(self) -> Iterator[Alert]:
        """Yield the alerts that fire and are neither meta alerts nor a self-test's."""
        return (one for one in self.alerts if one.status == "firing" and not one.is_meta and one.selftest_id is None)

    def selftests(self) -> list[str]:
        """Return the ids of the self-tests that sent firing alerts of it, in order."""
        found = (alert.selftest_id for alert in self.alerts if alert.status == "firing")
        return [run for run in found if run is not None]


def read_payload(body: bytes) -> Notification:
    """Return the notification in a request's body.

    Raises:
        PayloadError: If it is too large, no JSON, or no notification.
    """
    if len(body) > MOST_BYTES:
        raise PayloadError(f"payload of {len(body)} bytes, over {MOST_BYTES}")
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"payload is no JSON: {str(error)[:200]}") from error
    if not isinstance(payload, dict):
        raise PayloadError(f"payload is a {type(payload).__name__}, not an object")
    return parse_payload(payload)


def parse_payload(payload: Mapping[str, Any]) -> Notification:
    """Return the notification in a decoded payload.

    Unknown keys are ignored; an unknown version is refused, because fields may mean something else there.

    Raises:
        PayloadError: If the version is unknown or a field that matters is missing or of another type.
    """
    version = payload.get("version")
    sender = VERSIONS.get(version) if isinstance(version, str) else None
    if sender is None:
        raise PayloadError(f"payload of version {str(version)[:20]!r}: known are 4 (Alertmanager) and 1 (Grafana)")
    alerts = payload.get("alerts")
    if not isinstance(alerts, list):
        raise PayloadError("payload has no list of alerts")
    if len(alerts) > MOST_ALERTS:
        raise PayloadError(f"payload of {len(alerts)} alerts, over {MOST_ALERTS}; set max_alerts at the sender")
    truncated = payload.get("truncatedAlerts", 0)
    if isinstance(truncated, bool) or not isinstance(truncated, int) or truncated < 0:
        raise PayloadError("truncatedAlerts is no count")
    return Notification(
        sender=sender,
        status=_status(payload.get("status"), "payload"),
        group_key=_text(payload.get("groupKey", ""), "groupKey"),
        alerts=tuple(_alert(one, index) for index, one in enumerate(alerts)),
        truncated=truncated,
    )


def _alert(one: object, index: int) -> Alert:
    where = f"alert {index}"
    if not isinstance(one, dict):
        raise PayloadError(f"{where} is no object")
    labels = _texts(one.get("labels"), f"{where}: labels")
    starts_at = _time(one.get("startsAt"), f"{where}: startsAt")
    if starts_at is None:
        raise PayloadError(f"{where}: startsAt is missing")
    # The fingerprint is a hash of the labels; a sender without one still gets a stable identity, of a bounded size.
    fingerprint = _text(one.get("fingerprint", ""), f"{where}: fingerprint") or _digest(one["labels"])
    annotations = _texts(one.get("annotations", {}), f"{where}: annotations")
    panel_url = _address(one.get("panelURL")) or _address(one.get("dashboardURL"))
    return Alert(
        name=labels.get("alertname", ""),
        status=_status(one.get("status"), where),
        labels=labels,
        annotations=annotations,
        starts_at=starts_at,
        ends_at=_time(one.get("endsAt"), f"{where}: endsAt"),
        fingerprint=fingerprint,
        panel_url=panel_url or _panel(annotations.get("dashboard_url", "")),
    )


def _address(value: object) -> str:
    """Return an HTTP address as it is; empty for whatever else stands there, since nothing depends on it."""
    usable = isinstance(value, str) and len(value) <= MOST_TEXT and value.startswith(("http://", "https://"))
    return str(value) if usable and str(value).isprintable() else ""


def _panel(value: str) -> str:
    """Return an address, or the path of a panel as the shipped rules write it; empty for whatever else stands there."""
    return value if _PANEL_PATH.fullmatch(value) else _address(value)


def _digest(labels: Mapping[str, str]) -> str:
    """Return an identity of a label set, which may be megabytes: thousands of identities are remembered."""
    return hashlib.sha256(json.dumps(labels, sort_keys=True).encode()).hexdigest()


def _status(value: object, where: str) -> str:
    if value not in ("firing", "resolved"):
        raise PayloadError(f"{where}: status is {str(value)[:20]!r}, neither firing nor resolved")
    return str(value)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise PayloadError(f"{where} is no text")
    # JSON can hold half a surrogate pair, which no file and no log can.
    return value[:MOST_TEXT].encode("utf-8", "replace").decode()


def _texts(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise PayloadError(f"{where} is no object")
    return {_text(key, where): _text(text, where) for key, text in value.items()}


def _time(value: object, where: str) -> float | None:
    """Return unix seconds; None for absent and for Go's zero time, which stands for "not yet"."""
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise PayloadError(f"{where} is no RFC 3339 time: {str(value)[:40]!r}") from error
    if moment.year <= 1:
        return None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    try:
        # The last hours of year 9999 in a zone behind UTC parse, and lie in a year that nothing can write down.
        datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise PayloadError(f"{where} lies beyond the year 9999 in UTC: {str(value)[:40]!r}") from error
    return seconds
