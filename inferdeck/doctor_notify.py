"""What `doctor` says about messages: who hears of what triage finds, by the settings of this environment."""

from __future__ import annotations

from collections.abc import Iterator

from exporters.serving import CannotStartError
from inferdeck.checks import Check

__all__ = ["follow_ups"]


def follow_ups() -> Iterator[Check]:
    """Yield whether anybody is told what triage finds; nothing is sent."""
    from runbooks.notify.channels import channels_of
    from runbooks.notify.grafana_api import GrafanaSession, NoClientError
    from runbooks.notify.settings import load_notify_settings

    name = "notifications"
    try:
        settings = load_notify_settings()
    except CannotStartError as error:
        yield Check(name, "fail", str(error), "triage does not start with it: mend or unset the variable")
        return
    names = [channel.name for channel in channels_of(settings)]
    if settings.grafana_token.get_secret_value():
        address = settings.grafana_api_url or settings.grafana_url
        try:
            GrafanaSession(address or "http://unset.invalid")
            names += ["grafana"] if address else []
        except NoClientError as error:
            yield Check(name, "warn", str(error), "annotations are left out until then")
    if names:
        yield Check(name, "ok", f"triage tells what it finds by {', '.join(names)}")
    else:
        yield Check(name, "absent", "nobody is told what triage finds", "docs/notifications.md says how")
