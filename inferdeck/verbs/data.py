"""`investigate`: what the traffic's data is asked."""

from __future__ import annotations

from pathlib import Path

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["investigate"]


@click.command(short_help="Find which slice of the traffic changed, and since when.")
@click.option("--since", default="24h", show_default=True, help="How far back the window reaches: 90m, 24h, 7d.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the page here as well.")
@click.option("--report", metavar="ID", help="The incident's report that is to tell of it.")
@reports
def investigate(*, since: str, html: Path | None, report: str | None, quiet: bool) -> Outcome:
    r"""Find which slice of the traffic changed, in what, and since when; with what else was new about then.

    Reads the answered requests of the window out of the flight recorder's rows and the exporter's archive (a million
    of them at most), compares every slice (device, client release, agent, model version, language, length, hour) with
    its own time before and with the model's training, and says what explains the change: one slice, all traffic at
    once, or a mix of slices of which none changed itself. Effects are corrected for all that was looked at.

    The answer is kept below the state folder, in investigations/, as JSON and as a page with a plot (matplotlib, extra
    `investigate`). Exit 1 when something changed or is not as the training was.

    \b
    Examples:
      inferdeck investigate
      inferdeck investigate --since 90m --html drift.html
      inferdeck --json investigate --since 7d
    """
    from inferdeck.investigation import run_investigation
    from inferdeck.look_up import parse_duration
    from inferdeck.settings import load_settings

    del quiet
    return run_investigation(load_settings(), parse_duration(since), html, report)
