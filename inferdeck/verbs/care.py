"""`selftest`, `bundle`, `erase`: the stack proves itself, hands an incident over, and forgets a person."""

from __future__ import annotations

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["selftest"]


@click.command(short_help="Follow a marked request and alert through the running stack.")
@reports
def selftest(*, quiet: bool) -> Outcome:
    """Send a marked request and a marked alert through the running stack, and prove every link of both ways.

    Request: answered by the service, a row found by its session, counted by the exporter, scraped by Prometheus,
    shown as a trace. Alert: rules evaluated and Watchdog through to Alertmanager, a synthetic alert taken by
    Alertmanager, arrived at the webhook.

    The request is a real one and excluded from nothing: figures and rows count it. Its session id begins with
    inferdeck-selftest, as does its client release. The alert (slug selftest) has a route of its own that pages nobody,
    and starts no triage; it is over within a minute.

    What does not run here is absent, not broken. Takes half a minute at most, 5 s as a rule; exit 1 when a link is
    broken, and the first broken one is named.

    \b
    Examples:
      inferdeck selftest
      inferdeck selftest --json
    """  # noqa: D301  # click takes the backspace itself as its mark
    from inferdeck.selftest.run import run_selftest
    from inferdeck.settings import load_settings

    del quiet
    return run_selftest(load_settings())
