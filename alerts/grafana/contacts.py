"""The contact points: triage first, then the channels that people read."""

from __future__ import annotations

from typing import Any, Final

from alerts.grafana.messages import feishu_payload, message, title
from alerts.grafana.model import ContactPoint, Receiver

__all__ = ["contact_points"]

# One notification may hold this many alerts, as in Alertmanager's configuration.
_MOST_ALERTS: Final = 100


def contact_points() -> list[ContactPoint]:
    """Return all contact points; policies send to some of them, by the environment."""
    text = {"title": title(), "message": message(markdown=False)}
    return [
        ContactPoint("triage", [_webhook("triage", "${INFERDECK_TRIAGE_URL}/webhook", token=True)]),
        ContactPoint("dead_man", [_webhook("dead-man", "${INFERDECK_NOTIFY_DEAD_MAN_URL}", token=True)]),
        _one(
            "email",
            "email",
            {
                "addresses": "${INFERDECK_NOTIFY_EMAIL_TO}",
                "singleEmail": True,
                "subject": text["title"],
                "message": text["message"],
            },
        ),
        _one(
            "slack",
            "slack",
            {"url": "${INFERDECK_NOTIFY_SLACK_URL}", "title": text["title"], "text": text["message"]},
        ),
        _one(
            "dingtalk",
            "dingding",
            {
                "url": "${INFERDECK_NOTIFY_DINGTALK_URL}",
                "msgType": "actionCard",
                "title": text["title"],
                "message": message(markdown=True),
            },
        ),
        # Grafana has no contact point of Feishu's; its webhook can send any body.
        _one(
            "feishu",
            "webhook",
            {
                "url": "${INFERDECK_NOTIFY_FEISHU_URL}",
                "httpMethod": "POST",
                "maxAlerts": _MOST_ALERTS,
                "payload": {"template": feishu_payload()},
            },
        ),
    ]


def _one(name: str, kind: Any, settings: dict[str, Any]) -> ContactPoint:
    return ContactPoint(name, [Receiver(f"inferdeck-{name}", kind, settings)])


def _webhook(name: str, url: str, *, token: bool) -> Receiver:
    settings: dict[str, Any] = {"url": url, "httpMethod": "POST", "maxAlerts": _MOST_ALERTS}
    if token:
        # Without credentials Grafana sends no header.
        settings |= {"authorization_scheme": "Bearer", "authorization_credentials": "${INFERDECK_TRIAGE_TOKEN}"}
    return Receiver(f"inferdeck-{name}", "webhook", settings)
