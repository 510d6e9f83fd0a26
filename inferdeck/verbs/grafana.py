"""`grafana push`, `grafana check`, `grafana annotate`, `grafana silence`."""

from __future__ import annotations

import os
import time

import click

from inferdeck.errors import CannotRun
from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["grafana"]


@click.group(short_help="Load our dashboards and alerting into a running Grafana, and read them back.")
def grafana() -> None:
    """Work with a running Grafana over its HTTP interface: GRAFANA_URL, and GRAFANA_TOKEN of a service account.

    The compose stack needs none of this: its Grafana reads our files at its start.

    \b
    Examples:
      inferdeck grafana push --prometheus http://prometheus:9090
      inferdeck grafana check
      inferdeck grafana annotate "release 1.4" --tag deploy
      inferdeck grafana silence DiskFull --for 30m --because "the disk is being replaced"
    """  # noqa: D301  # click looks for the character, not for two letters


@grafana.command()
@click.option("--prometheus", default="", metavar="URL", help="Create the data source with this address if missing.")
@click.option("--policies", is_flag=True, help="Replace the policy tree, of which Grafana has only one.")
@reports
def push(*, prometheus: str, policies: bool, quiet: bool) -> Outcome:
    """Load our dashboards, contact points, templates, mute timings and alert rules; exit 1 when a part is missing.

    What is there under our uids is replaced and stays editable; all else is left alone. The variables of the alerting
    files (INFERDECK_NOTIFY_SLACK_URL and others, see alerts/grafana/grafana.env) are taken from the environment.

    \b
    Examples:
      GRAFANA_URL=http://127.0.0.1:3000 inferdeck grafana push --policies
      inferdeck grafana push --json
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.checks import report
    from inferdeck.grafana.connection import connect, refusals_as_one_line, variables_of
    from inferdeck.grafana.loading import push as load
    from inferdeck.version import ROOT

    del quiet
    with refusals_as_one_line():
        return report(load(connect(), ROOT, variables_of(), prometheus_url=prometheus, replace_policies=policies))


@grafana.command()
@reports
def check(*, quiet: bool) -> Outcome:
    """Compare what a running Grafana holds with our files; changes nothing, exit 1 when something differs.

    \b
    Example:
      GRAFANA_URL=http://127.0.0.1:3000 inferdeck grafana check
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.checks import report
    from inferdeck.grafana.compare import compare
    from inferdeck.grafana.connection import connect, refusals_as_one_line, variables_of
    from inferdeck.version import ROOT

    del quiet
    with refusals_as_one_line():
        return report(compare(connect(), ROOT, variables_of()))


@grafana.command()
@click.argument("text")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="What it is found by, beside inferdeck.")
@click.option("--for", "length", default="", metavar="30m", help="How long it lasted, up to now; a moment by default.")
@reports
def annotate(*, text: str, tags: tuple[str, ...], length: str, quiet: bool) -> Outcome:
    """Mark a deploy, an experiment, or anything else on the dashboards.

    \b
    Example:
      inferdeck grafana annotate "release 1.4" --tag deploy
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.grafana.connection import connect, refusals_as_one_line, seconds_of
    from runbooks.notify.grafana_api import TAG, mark

    del quiet
    now = time.time()
    with refusals_as_one_line():
        seconds = seconds_of(length) if length else 0.0
        until = now if length else None
        known = mark(connect(), text, [TAG, *tags], since=now - seconds, until=until)
    return Outcome({"id": known}, 0, lambda console: console.print(f"annotation {known}", markup=False))


@grafana.command()
@click.argument("alert")
@click.option("--for", "length", default="1h", show_default=True, metavar="30m", help="For how long, at most 7d.")
@click.option("--because", required=True, metavar="TEXT", help="Why; who finds it later must know.")
@reports
def silence(*, alert: str, length: str, because: str, quiet: bool) -> Outcome:
    """Silence one alert in Grafana's own Alertmanager, for a while and with a reason.

    \b
    Example:
      inferdeck grafana silence DiskFull --for 30m --because "the disk is being replaced"
    """  # noqa: D301  # click looks for the character, not for two letters
    from alerts.load import load_catalogue
    from inferdeck.grafana.connection import connect, refusals_as_one_line, seconds_of
    from runbooks.notify.grafana_api import silence as ask_for_silence

    del quiet
    names = sorted(one.alert for one in load_catalogue())
    if alert not in names:
        # A misspelt name would silence nothing, and be found out at night.
        raise CannotRun(f"there is no alert {alert!r}", f"one of {', '.join(names)}")
    with refusals_as_one_line():
        seconds = seconds_of(length)
        author = os.environ.get("USER", "inferdeck")
        known = ask_for_silence(connect(), alert, seconds=seconds, author=author, comment=because, now=time.time())
    return Outcome({"id": known}, 0, lambda console: console.print(f"silence {known}", markup=False))
