"""`reports`."""

from __future__ import annotations

import click

from inferdeck.result import Outcome
from inferdeck.verbs import common

__all__ = ["reports"]


@click.command(short_help="List and show the reports that triage kept.")
@click.argument("report_id", required=False, metavar="[ID]")
@click.option("--count", default=20, show_default=True, type=click.IntRange(1, 200), help="How many to list.")
@common.reports
def reports(*, report_id: str | None, count: int, quiet: bool) -> Outcome:
    r"""List the kept reports, newest first, or show one; the beginning of its id will do.

    They are kept by the triage that alerts start, and by `inferdeck triage`.

    \b
    Examples:
      inferdeck reports
      inferdeck reports 20260101T000000Z-0123abcd
    """
    from inferdeck.kept_reports import list_reports, show_report
    from inferdeck.settings import load_settings

    del quiet
    return show_report(load_settings(), report_id) if report_id else list_reports(load_settings(), count)
