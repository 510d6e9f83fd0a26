"""From settings to channels: each that is set up, and only those."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from runbooks.notify.chat import dingtalk, dingtalk_said, feishu, feishu_said, plain, slack
from runbooks.notify.delivery import Channel
from runbooks.notify.grafana_api import GrafanaSession, NoClientError
from runbooks.notify.links import Links
from runbooks.notify.mail import Mailbox, send_mail
from runbooks.notify.message import Message
from runbooks.notify.outcome import Outcome
from runbooks.notify.posting import post
from runbooks.notify.settings import NotifySettings

__all__ = ["channels_of", "grafana_of", "links_of"]

_log = logging.getLogger("runbooks.notify")


def channels_of(settings: NotifySettings, clock: Callable[[], float] = time.time) -> list[Channel]:
    """Return the channels that are set up.

    Args:
        settings: The settings.
        clock: Unix seconds, for signatures.
    """
    found = []
    if url := settings.slack_url.get_secret_value():
        found.append(Channel("slack", partial(_slack, url)))
    if url := settings.dingtalk_url.get_secret_value():
        found.append(Channel("dingtalk", partial(_dingtalk, url, settings.dingtalk_secret.get_secret_value(), clock)))
    if url := settings.feishu_url.get_secret_value():
        found.append(Channel("feishu", partial(_feishu, url, settings.feishu_secret.get_secret_value(), clock)))
    if url := settings.webhook_url.get_secret_value():
        found.append(Channel("webhook", partial(_plain, url, settings.webhook_token.get_secret_value())))
    if settings.addresses:
        box = Mailbox(
            to=settings.addresses,
            sender=settings.email_from,
            host=settings.smtp_host,
            port=settings.smtp_port,
            user=settings.smtp_user,
            password=settings.smtp_password.get_secret_value(),
            starttls=settings.smtp_starttls,
        )
        found.append(Channel("email", partial(_mail, box)))
    return found


def _slack(url: str, message: Message) -> Outcome:
    return post(slack(message, url))


def _dingtalk(url: str, secret: str, clock: Callable[[], float], message: Message) -> Outcome:
    return post(dingtalk(message, url, secret, clock), dingtalk_said)


def _feishu(url: str, secret: str, clock: Callable[[], float], message: Message) -> Outcome:
    return post(feishu(message, url, secret, clock), feishu_said)


def _plain(url: str, token: str, message: Message) -> Outcome:
    return post(plain(message, url, token))


def _mail(box: Mailbox, message: Message) -> Outcome:
    return send_mail(message, box)


def grafana_of(settings: NotifySettings) -> GrafanaSession | None:
    """Return the Grafana to write into, or None where none is set up or its client is missing, which is said."""
    token = settings.grafana_token.get_secret_value()
    url = settings.grafana_api_url or settings.grafana_url
    if not (url and token):
        return None
    try:
        return GrafanaSession(url, token)
    except NoClientError as error:
        _log.warning("no annotations: %s", error)
        return None


def links_of(settings: NotifySettings, own_url: str) -> Links:
    """Return where a message's links lead.

    Args:
        settings: The settings.
        own_url: Where this service listens; what is meant when nothing else is set.
    """
    triage = settings.triage_url or own_url
    return Links(
        runbooks=settings.runbook_url or (f"{triage.rstrip('/')}/" if triage else ""),
        triage=triage,
        grafana=settings.grafana_url,
        jaeger=settings.jaeger_url,
        service=settings.service,
    )
