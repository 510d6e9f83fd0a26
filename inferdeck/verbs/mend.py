"""`mitigate`."""

from __future__ import annotations

import sys

import click

from inferdeck.errors import CannotRun
from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["mitigate"]


def _ask(plan: str) -> bool:
    if not sys.stdin.isatty():
        raise CannotRun(f"this would carry out {plan}, and nobody is there to confirm it", "add --yes")
    return click.confirm(f"carry out {plan}?", err=True)


@click.command(short_help="Carry out what an alert's runbook offers, and look whether it helped.")
@click.argument("alert", required=False)
@click.option("--list", "list_all", is_flag=True, help="What can be carried out; so it is without ALERT.")
@click.option("--undo", metavar="RUN", help="Take back what a run did.")
@click.option("--log", is_flag=True, help="Who did what, when, why, and how it ended.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--auto", is_flag=True, hidden=True, help="As the triage service: only what is switched on and safe.")
@click.option("--report", metavar="ID", help="The report that asks for it, for the journal.")
@reports
def mitigate(
    *,
    alert: str | None,
    list_all: bool,
    undo: str | None,
    log: bool,
    dry_run: bool,
    yes: bool,
    auto: bool,
    report: str | None,
    quiet: bool,
) -> Outcome:
    r"""Carry out the mitigations of an alert's runbook, in order, until the alert's expression is no longer true.

    Only while the alert holds; each step is written to the journal before it is done, at most a few times an hour,
    never two at once. What does not help is taken back where that is possible.

    By itself the triage service does none of this. INFERDECK_TRIAGE_MITIGATE=restart_service,restart_exporter switches
    on, by id, what it may do after a verdict; only what its page marks as safe can be.

    Exit 0 when the alert is over, 1 when it is not or nothing was done, and why is said.

    \b
    Examples:
      inferdeck mitigate --list
      inferdeck mitigate ServiceDown --dry-run
      inferdeck mitigate ExporterUnreachable --yes
      inferdeck mitigate --log
      inferdeck mitigate --undo 0123abcd
    """
    from inferdeck.mitigation.command import list_mitigations, run_mitigate, run_undo, show_log
    from inferdeck.settings import load_settings

    del quiet
    if sum(map(bool, (alert, list_all, undo, log))) > 1:
        raise click.UsageError("give one of ALERT, --list, --undo and --log")
    settings = load_settings()
    if undo:
        return run_undo(settings, undo)
    if log:
        return show_log(settings)
    if alert is None:
        return list_mitigations(settings)
    confirm = (lambda _plan: True) if yes or auto else _ask
    return run_mitigate(settings, alert, auto=auto, report=report, dry_run=dry_run, confirm=confirm)
