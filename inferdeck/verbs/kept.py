"""`reports` and `deadletters`: what was kept, listed and shown."""

from __future__ import annotations

import click

from inferdeck.result import Outcome
from inferdeck.verbs import common

__all__ = ["deadletters", "reports"]


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


@click.command(short_help="List, show and purge the requests that failed the contract.")
@click.argument("action", required=False, type=click.Choice(["list", "show", "purge"]), default="list")
@click.argument("letter_id", required=False, metavar="[ID]")
@click.option("--count", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many to list.")
@common.reports
def deadletters(*, action: str, letter_id: str | None, count: int, quiet: bool) -> Outcome:
    r"""List the requests that failed the contract, newest first, show one, or purge them all.

    A letter has the link that refused it, reason and field, and the shape of its text: letters, digits and ideographs
    are blotted out, so that what broke the contract is seen and nothing about anybody. With the service's setting
    dead_letter_text: masked the text is kept, less personal data.

    They are in service/deadletters below the state folder, bounded by the setting dead_letter_bytes; a purge does not
    disturb a running service.

    \b
    Examples:
      inferdeck deadletters
      inferdeck deadletters show 0123abcd
      inferdeck deadletters purge
    """
    from inferdeck.dead_letters import list_letters, purge_letters, show_letter
    from inferdeck.settings import load_settings

    del quiet
    if (letter_id is not None) != (action == "show"):
        raise click.UsageError("ID goes with show, and show with an ID")
    settings = load_settings()
    if letter_id is not None:
        return show_letter(settings, letter_id)
    return purge_letters(settings) if action == "purge" else list_letters(settings, count)
