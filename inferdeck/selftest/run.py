"""Runs the links in order, names the first broken one, and shows the chain."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from inferdeck.checks import COLOURS
from inferdeck.result import Outcome
from inferdeck.selftest.alert_links import AlertLinks
from inferdeck.selftest.link import Link, Moment, look
from inferdeck.selftest.places import Places, find_places
from inferdeck.selftest.request_links import MARK, RequestLinks
from inferdeck.settings import StackSettings

__all__ = ["run_selftest", "selftest"]

# 15 s for the request's way, as long as its scrapes are not farther apart than usual
LEAST_SCRAPE_LIMIT_SECONDS = 12.0


def run_selftest(settings: StackSettings) -> Outcome:
    """Send a marked request and a marked alert through the stack of these settings.

    Args:
        settings: Where the stack is.
    """
    # twice the interval: a scrape may just have been missed
    limit = max(LEAST_SCRAPE_LIMIT_SECONDS, 2.0 * settings.scrape_interval_seconds + 2.0)
    return selftest(find_places(settings), scrape_limit_seconds=limit)


def selftest(places: Places, *, scrape_limit_seconds: float, moment: Moment | None = None) -> Outcome:
    """Follow a marked request and a marked alert through *places*.

    Args:
        places: Where the parts are.
        scrape_limit_seconds: How long Prometheus may take to scrape.
        moment: Clocks.
    """
    moment = moment or Moment()
    request = RequestLinks(places, f"{MARK}-{secrets.token_hex(6)}", moment, scrape_limit_seconds)
    alert = AlertLinks(places, secrets.token_hex(8), moment)
    links = [
        look(name, see, moment.tick)
        for name, see in (
            ("service", request.service),
            ("row", request.row),
            ("exporter", request.exporter),
            ("prometheus", request.prometheus),
            ("rules", alert.rules),
            ("notifier", alert.notifier),
            ("webhook", alert.webhook),
            ("trace", request.look_up),
        )
    ]
    broken = next((link.name for link in links if link.state == "fail"), None)
    payload: dict[str, Any] = {
        "checks": [asdict(link) for link in links],
        "broken": broken,
        "session_id": request.session_id,
        "alert_id": alert.run_id,
        "trace": request.trace,
    }
    return Outcome(payload, int(broken is not None), lambda console: _show(console, links, payload))


def _show(console: Console, links: Sequence[Link], payload: dict[str, Any]) -> None:
    for link in links:
        line = Text(f"{link.state:6}", COLOURS.get(link.state, ""))
        line.append(f" {link.name:10} {link.took_s:6.2f} s  {link.detail}", "default")
        if link.mend and link.state != "ok":
            line.append(f"; {link.mend}", "bold")
        console.print(line)
    if payload["trace"] is not None:
        from inferdeck.waterfall import show_trace

        console.print()
        show_trace(console, payload["trace"])
    absent = ", ".join(link.name for link in links if link.state == "absent")
    said = f"the first broken link is {payload['broken']}" if payload["broken"] else "every link that is here works"
    console.print(f"{said}{f' (not here: {absent})' if absent else ''}", markup=False, style="bold")
