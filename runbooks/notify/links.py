"""Where a message's links lead; what is not set up is said instead of a link that leads nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

__all__ = ["OVERVIEW", "Links", "shown_url"]

# The dashboard that answers "is it us, and which layer"; its uid is fixed (dashboards/).
OVERVIEW: Final = "inferdeck-overview"
MOST_TRACES: Final = 3


def shown_url(url: str) -> str:
    """Return as much of an address as a log may hold: chat webhooks carry their secret in path or query.

    Args:
        url: The whole address.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    # The error's text would hold what is wrong, which may be a secret.
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.hostname or '?'}{port}/..."


@dataclass(frozen=True)
class Links:
    """Addresses as a reader's browser knows them; empty for none.

    Attributes:
        runbooks: What stands before `runbooks/<AlertName>.md`.
        triage: Triage itself, for its reports.
        grafana: Grafana.
        jaeger: Jaeger.
        service: Name of the watched service, as in its spans.
    """

    runbooks: str = ""
    triage: str = ""
    grafana: str = ""
    jaeger: str = ""
    service: str = "sentiment"

    def runbook(self, page: str | None) -> str:
        """Return the page's address; its path within the repository where pages are served nowhere.

        Args:
            page: `runbooks/<AlertName>.md`, or None.
        """
        return f"{self.runbooks}{page}" if page else "none for this alert; runbooks/README.md tells how to go on"

    def report(self, report_id: str | None) -> str:
        """Return the report's address, or how to read it."""
        if self.triage and report_id:
            return f"{self.triage.rstrip('/')}/reports/{report_id}"
        return f"{report_id}.json in the state folder's reports" if report_id else "not kept on disk"

    def dashboard(self, window: Mapping[str, Any], panel_url: str = "") -> str:
        """Return the address of the alert's panel, else of the overview at that time.

        Args:
            window: The result's `window`.
            panel_url: As sent with the alert: an address, or a path below Grafana's; empty when it was not.
        """
        if panel_url.startswith(("http://", "https://")):
            return panel_url
        if not self.grafana:
            return "no Grafana is set up (INFERDECK_NOTIFY_GRAFANA_URL)"
        span = {"from": _unix(window["from"]) // 1_000_000, "to": _unix(window["to"]) // 1_000_000}
        path = panel_url or f"d/{OVERVIEW}"
        return f"{self.grafana.rstrip('/')}/{path}{'&' if '?' in path else '?'}{urlencode(span)}"

    def trace_search(self, window: Mapping[str, Any]) -> str:
        """Return the search for the traces of that time, or the command that finds them without Jaeger."""
        if not self.jaeger:
            return "inferdeck trace --slow 5 --since 15m"
        span = {"start": _unix(window["from"]) // 1000, "end": _unix(window["to"]) // 1000}
        return f"{self.jaeger.rstrip('/')}/search?" + urlencode(
            {"service": self.service, "lookback": "custom", **span, "limit": 20}
        )

    def traces(self, ids: list[str]) -> list[str]:
        """Return the worst requests: addresses of their traces, or the ids where there is no Jaeger."""
        base = f"{self.jaeger.rstrip('/')}/trace/" if self.jaeger else ""
        return [f"{base}{one}" for one in ids[:MOST_TRACES]]


def _unix(text: str) -> int:
    """Return an RFC 3339 time in nanoseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1e6) * 1000
