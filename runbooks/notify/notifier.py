"""Between triage and the channels: each kept result becomes a follow-up, and what became of it stands in the report."""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from runbooks.inbox import Incident
from runbooks.notify.channels import channels_of, grafana_of, links_of
from runbooks.notify.delivery import Channel, Delivery
from runbooks.notify.grafana_api import GrafanaSession, annotate, end_incident
from runbooks.notify.links import Links
from runbooks.notify.message import message_of
from runbooks.notify.settings import NotifySettings
from runbooks.payloads import Notification
from runbooks.store import ReportStore

__all__ = ["FollowUpCounter", "Notifier", "notifier_of"]

# Ends of alerts that wait for Grafana; they are names and times, and a lost one leaves an annotation without its end.
_MOST_ENDS: Final = 200

_log = logging.getLogger("runbooks.notify")


class Notifier:
    """Sends follow-ups.

    Args:
        channels: The ways to people.
        links: Where a message's links lead.
        store: Where reports are kept.
        grafana: Whose annotations get their end when an alert ends; None for none.
        most_waiting: Messages that may wait, per channel.
        most_tries: Tries of one message.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        links: Links,
        store: ReportStore,
        grafana: GrafanaSession | None = None,
        *,
        most_waiting: int = 100,
        most_tries: int = 7,
    ) -> None:
        self.delivery = Delivery(channels, self._note, most_waiting, most_tries)
        self._links, self._store, self._grafana = links, store, grafana
        self._ends: collections.deque[tuple[str, float]] = collections.deque(maxlen=_MOST_ENDS)
        self._ended = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._close_annotations, name="notify-ends", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self.delivery.start()
        if self._grafana is not None:
            self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Stop; what still waits is lost, counted, and said in its report."""
        self._stopping.set()
        self._ended.set()
        self.delivery.stop(timeout_seconds)

    def tell(self, incident: Incident, result: Mapping[str, Any], mitigated: Mapping[str, Any] | None = None) -> None:
        """Send a result to every channel.

        Args:
            incident: What was looked at.
            result: What was found, as kept.
            mitigated: What was done about it since, for a message about that; None for the one about the result.
        """
        if not self.delivery.workers:
            return
        try:
            message = message_of(
                result,
                self._links,
                starts_at=float(incident.starts_at),
                panel_url=incident.panel_url,
                mitigated=mitigated,
            )
        # A message that cannot be written must cost neither the report nor the thread that looks at incidents.
        except Exception:  # noqa: BLE001
            _log.exception("no follow-up for %s", incident.alert)
            return
        self.delivery.offer(message)

    def ended(self, notification: Notification) -> None:
        """Take note of alerts that ended.

        Args:
            notification: As received.
        """
        if self._grafana is None:
            return
        for alert in notification.alerts:
            if alert.status == "resolved" and alert.ends_at is not None and not alert.is_meta and alert.name:
                self._ends.append((alert.name, alert.ends_at))
                self._ended.set()

    def _close_annotations(self) -> None:
        while not self._stopping.is_set():
            self._ended.wait()
            self._ended.clear()
            while self._ends and not self._stopping.is_set() and self._grafana is not None:
                alert, ended_at = self._ends.popleft()
                try:
                    outcome = end_incident(self._grafana, alert, ended_at)
                # The last door: the next alert's end must still be written.
                except Exception:  # noqa: BLE001
                    _log.exception("the annotation of %s keeps no end", alert)
                    continue
                if outcome.state != "sent":
                    _log.warning("the annotation of %s keeps no end: %s", alert, outcome.detail)

    def _note(self, report_id: str | None, channel: str, result: str, said: str) -> None:
        """Write into the report what became of its follow-up."""
        if report_id is None:
            return
        entry = {"channel": channel, "result": result, "detail": said, "at": datetime.now(UTC).isoformat()}
        self._store.amend(report_id, lambda report: report.setdefault("follow_ups", []).append(entry))


class FollowUpCounter(Collector):
    """Figures about follow-ups.

    Args:
        notifier: Whose.
    """

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        ends = CounterMetricFamily(
            "telemetry_triage_follow_ups",
            "Follow-ups by channel and what became of them; all but sent are losses.",
            labels=["channel", "result"],
        )
        waiting = GaugeMetricFamily(
            "telemetry_triage_waiting_follow_ups", "Follow-ups that wait, by channel.", labels=["channel"]
        )
        for worker in self._notifier.delivery.workers:
            for result, count in worker.results.items():
                ends.add_metric([worker.channel.name, result], count)
            waiting.add_metric([worker.channel.name], len(worker))
        yield ends
        yield waiting


def notifier_of(settings: NotifySettings, store: ReportStore, own_url: str) -> Notifier:
    """Return the notifier that the settings ask for; with none it sends nothing.

    Args:
        settings: The settings.
        store: Where reports are kept.
        own_url: Where triage listens.
    """
    # Its line for each request holds the whole address, and with it the secret of a chat's webhook.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    channels = channels_of(settings)
    grafana = grafana_of(settings)
    if grafana is not None:
        channels.append(Channel("grafana", lambda message: annotate(grafana, message)))
    links = links_of(settings, own_url)
    return Notifier(channels, links, store, grafana, most_waiting=settings.most_waiting, most_tries=settings.most_tries)
