"""The alert's way: rules evaluated, a synthetic alert taken by Alertmanager, arrived at the webhook."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from inferdeck.http_get import Unreachable, get, get_json, post_json
from inferdeck.selftest.link import Broken, LinkAbsent, Moment
from inferdeck.selftest.places import Places

__all__ = ["AlertLinks"]

# rules are evaluated every 5 s, twice at most; Watchdog's group waits for nothing
RULES_SECONDS = 12.0
# Prometheus repeats an alert after --rules.alert.resend-delay, 1 m by default, at its next evaluation
RESEND_SECONDS = 75.0
# our group waits 0 s, Alertmanager flushes within a second, the webhook answers at once
WEBHOOK_SECONDS = 10.0
ALERT_SECONDS = 60
RECEIVER = "selftest"


@dataclass
class AlertLinks:
    """One synthetic alert and what became of it.

    Attributes:
        places: Where the parts are.
        run_id: Sixteen random digits; the alert's label `selftest`.
        moment: Clocks.
    """

    places: Places
    run_id: str
    moment: Moment = field(default_factory=Moment)
    _sent: str = ""

    def rules(self) -> str:
        """See that the rules are evaluated, and that the one that always fires has come through to Alertmanager."""
        url = self.places.url("prometheus")
        notified = "alertmanager" not in self.places.left_out

        def watched() -> str | None:
            groups = get_json(f"{url}/api/v1/rules", 3.0)["data"]["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            if not rules:
                raise Broken("Prometheus has no rules", "its configuration names none; `inferdeck down; inferdeck up`")
            if failing := [rule["name"] for rule in rules if rule["health"] == "err"]:
                raise Broken(f"rules fail: {', '.join(failing[:5])}", f"look at {url}/rules")
            firing = {rule["name"]: rule.get("alerts", []) for rule in rules if rule.get("state") == "firing"}
            if "Watchdog" not in firing:
                return None
            through = self._came_through(url, firing["Watchdog"]) if notified else "; there is no Alertmanager to tell"
            if through is None:
                return None
            others = sorted(firing.keys() - {"Watchdog"})
            told = f"; firing besides Watchdog: {', '.join(others)}" if others else ""
            return f"{len(rules)} rules, all evaluated; Watchdog fires{through}{told}"

        try:
            seen = self.moment.wait_for(watched, RULES_SECONDS, 0.5)
        except Unreachable as error:
            raise self.places.silent("prometheus", error) from error
        if seen is None:
            raise Broken("Watchdog, which always fires, did not come through", f"look at {url}/alerts and its log")
        return seen

    def _came_through(self, url: str, watchdog: list[dict[str, Any]]) -> str | None:
        """Return how far Watchdog came, None while that is too little."""
        if self._alerts('alertname="Watchdog"'):
            return " and came through to Alertmanager"
        known = get_json(f"{url}/api/v1/alertmanagers", 3.0)["data"]["activeAlertmanagers"]
        # evaluated before Alertmanager was found, an alert is lost and said again a minute later
        since = min(
            (datetime.fromisoformat(one["activeAt"][:19] + "+00:00").timestamp() for one in watchdog), default=0.0
        )
        age = self.moment.wall() - since
        if known and age < RESEND_SECONDS:
            return f" since {age:.0f} s, and is said to Alertmanager, which Prometheus has found, within a minute"
        return None

    def notifier(self) -> str:
        """Post the alert; its route must be the self-test's own, so that nobody is woken."""
        url = self.places.url("alertmanager")
        try:
            receivers = [one["name"] for one in get_json(f"{url}/api/v2/receivers", 3.0)]
            if RECEIVER not in receivers:
                # not posted: with another configuration it would be a ticket or a page for somebody
                raise Broken(
                    f"no receiver {RECEIVER!r} (it has {', '.join(receivers[:8])}): nothing was posted",
                    "take the route from alerts/alertmanager.yml; the stack's own: `inferdeck down; inferdeck up`",
                )
            status, body = post_json(f"{url}/api/v2/alerts", [self._alert()], 3.0)
            if status != 200:
                raise Broken(f"it answers {status}: {body[:200].decode(errors='replace')}", "look at its log")
            routed = [
                receiver["name"] for one in self._alerts(f'selftest="{self.run_id}"') for receiver in one["receivers"]
            ]
        except Unreachable as error:
            raise self.places.silent("alertmanager", error) from error
        self._sent = "sent through Alertmanager"
        if routed and routed != [RECEIVER]:
            raise Broken(
                f"the alert goes to {', '.join(routed)}", "put the self-test's route first in its configuration"
            )
        return f"took the alert for receiver {RECEIVER!r} alone; it pages nobody"

    def webhook(self) -> str:
        """See that the alert has arrived at the triage service; without a notifier it is posted there directly."""
        url = self.places.url("triage")
        token = os.environ.get("INFERDECK_TRIAGE_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            if not self._sent:
                self._post_directly(url, headers)

            def arrived() -> str | None:
                status, body = get(f"{url}/selftests", 3.0, headers)
                if status != 200:
                    raise Broken(
                        f"/selftests answers {status}", "an older triage service, or INFERDECK_TRIAGE_TOKEN lacks"
                    )
                # the page is our own and short: looked through as text
                if f'"{self.run_id}"'.encode() not in body:
                    return None
                return f"arrived, {self._sent}; acknowledged, no triage started"

            seen = self.moment.wait_for(arrived, WEBHOOK_SECONDS, 0.2)
        except Unreachable as error:
            raise self.places.silent("triage", error) from error
        if seen is None:
            raise Broken(
                f"the alert, {self._sent}, did not arrive within {WEBHOOK_SECONDS:.0f} s",
                "is Alertmanager's webhook address the triage service's? its log tells",
            )
        return seen

    def _post_directly(self, url: str, headers: dict[str, str]) -> None:
        alert = self._alert()
        one = {"status": "firing", **alert, "endsAt": "0001-01-01T00:00:00Z", "fingerprint": self.run_id}
        payload = {"version": "4", "status": "firing", "groupKey": "selftest", "alerts": [one]}
        status, body = post_json(f"{url}/webhook", payload, 3.0, headers)
        if status != 202:
            raise Broken(f"/webhook answers {status}: {body[:200].decode(errors='replace')}", "look at its log")
        self._sent = "posted directly as there is no notifier"

    def _alert(self) -> dict[str, Any]:
        now = self.moment.wall()
        starts, ends = (datetime.fromtimestamp(at, UTC).isoformat() for at in (now, now + ALERT_SECONDS))
        labels = {
            "alertname": "InferdeckSelftest",
            "slug": "selftest",
            "selftest": self.run_id,
            "layer": "telemetry",
            # a meta alert starts no triage, in older versions of the webhook neither
            "kind": "meta",
            "severity": "info",
            "channel": "ticket",
        }
        annotations = {"summary": "A self-test by `inferdeck selftest`; nothing is wrong."}
        return {"labels": labels, "annotations": annotations, "startsAt": starts, "endsAt": ends}

    def _alerts(self, matcher: str) -> list[dict[str, Any]]:
        try:
            url = self.places.url("alertmanager")
        except LinkAbsent:
            return []
        found: list[dict[str, Any]] = get_json(f"{url}/api/v2/alerts?filter={quote(matcher)}", 3.0)
        return found
