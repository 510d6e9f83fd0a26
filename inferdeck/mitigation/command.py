"""Behind `inferdeck mitigate`: lists, carries out, takes back and shows what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from inferdeck.errors import CannotRun
from inferdeck.result import Outcome, iso_utc
from inferdeck.settings import StackSettings

if TYPE_CHECKING:
    from rich.console import Console

    from runbooks.mitigation.mitigator import Asker, Mitigator
    from runbooks.mitigation.settings import MitigationSettings

__all__ = ["list_mitigations", "run_mitigate", "run_undo", "show_log"]

Confirm = Callable[[str], bool]
# The last hundred lines: more is in the file.
MOST_SHOWN = 100


def _settings(settings: StackSettings) -> MitigationSettings:
    from pydantic import ValidationError

    from runbooks.mitigation.settings import MitigationSettings

    try:
        return MitigationSettings(state_dir=settings.state_path)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).upper()
        raise CannotRun(
            f"INFERDECK_TRIAGE_{name}: {first['msg'].removeprefix('Value error, ')}", "mend that variable"
        ) from error


def _mitigator(settings: StackSettings, mine: MitigationSettings) -> Mitigator:
    import time

    from inferdeck.mitigation.actions import stack_actions
    from inferdeck.triage_command import prometheus_url
    from runbooks.mitigation.journal import Journal
    from runbooks.mitigation.mitigator import Limits, Mitigator
    from runbooks.mitigation.recovery import AlertExpression
    from runbooks.pages import load_pages

    return Mitigator(
        Journal(mine.folder, time.time),
        stack_actions(settings),
        load_pages(),
        AlertExpression(prometheus_url(settings)).holds,
        limits=Limits(mine.mitigate_per_hour, mine.mitigate_total_per_hour),
        recheck_seconds=mine.mitigate_recheck_seconds,
    )


def _asker(mine: MitigationSettings, why: str, report: str | None, *, auto: bool) -> Asker:
    from runbooks.mitigation.mitigator import Asker

    if auto:
        return Asker("automatic", why, report, mine.enabled)
    # a number and no name: names of people are personal data
    return Asker(f"user {os.getuid()}", why, report)


def run_mitigate(
    settings: StackSettings,
    alert: str,
    *,
    auto: bool = False,
    report: str | None = None,
    dry_run: bool = False,
    confirm: Confirm = lambda _plan: True,
) -> Outcome:
    """Carry out what an alert's page offers, and look whether it helped.

    Args:
        settings: Where the stack is.
        alert: The alert's name.
        auto: Whether no person asks: then only what is switched on and safe.
        report: Id of the report that asks for it.
        dry_run: Only say what would be done.
        confirm: Asked with the plan before anything is done.
    """
    from runbooks.mitigation.mitigator import Refused

    mine = _settings(settings)
    mitigator = _mitigator(settings, mine)
    asker = _asker(mine, f"report {report} names it" if report else f"asked for {alert}", report, auto=auto)
    result: dict[str, Any] = {"alert": alert, "dry_run": dry_run, "refused": None, "plan": [], "runs": []}
    try:
        chosen = mitigator.chosen(alert, asker)
        result["plan"] = [
            {"id": action.id, "about": action.about, "safe": one.safe, "undo": action.undo is not None}
            for one, action in chosen
        ]
        if not dry_run:
            if not confirm("; if that does not help ".join(f"{a.id} ({a.about})" for _, a in chosen)):
                raise Refused("not confirmed")
            result["runs"] = mitigator.mitigate(alert, asker)
    except Refused as error:
        result["refused"] = str(error)
    good = dry_run or any(run["outcome"] == "recovered" for run in result["runs"])
    return Outcome(result, 0 if good and result["refused"] is None else 1, lambda console: _show(console, result))


def run_undo(settings: StackSettings, run: str) -> Outcome:
    """Take back what a run did.

    Args:
        settings: Where the stack is.
        run: Its id, as `--log` shows it.
    """
    from runbooks.mitigation.mitigator import Refused

    mine = _settings(settings)
    result: dict[str, Any] = {"refused": None, "undo": None}
    try:
        undone = _mitigator(settings, mine).undo(run, _asker(mine, f"undo of {run}", None, auto=False))
        result["undo"] = {"run": run, **undone}
    except Refused as error:
        result["refused"] = str(error)
    good = result["undo"] is not None and result["undo"]["outcome"] == "undone"
    return Outcome(result, 0 if good else 1, lambda console: _show(console, result))


def list_mitigations(settings: StackSettings) -> Outcome:
    """List what can be carried out here, for which alert, and what is switched on."""
    from runbooks.pages import load_pages

    mine = _settings(settings)
    actions = _mitigator(settings, mine).actions
    found = [
        {
            "alert": page.alert,
            "id": one.id,
            "about": actions[one.id].about if one.id in actions else "not known to this stack",
            "safe": one.safe,
            "switched_on": one.id in mine.enabled,
            "undo": one.id in actions and actions[one.id].undo is not None,
        }
        for page in load_pages().values()
        for one in page.mitigations
        if one.id
    ]
    limits = {"per_id": mine.mitigate_per_hour, "total": mine.mitigate_total_per_hour}

    def show(console: Console) -> None:
        for one in found:
            how = "switched on" if one["switched_on"] else ("off" if one["safe"] else "only by a person")
            console.print(f"{one['alert']:22} {one['id']:18} {how:16} {one['about']}", markup=False)
        told = f"at most {limits['per_id']} an hour of each, {limits['total']} of all; INFERDECK_TRIAGE_MITIGATE=ID,..."
        console.print(told, markup=False, style="dim")

    return Outcome({"mitigations": found, "limits_per_hour": limits}, 0, show)


def show_log(settings: StackSettings) -> Outcome:
    """Show the journal."""
    import time

    from runbooks.mitigation.journal import Journal, JournalError

    try:
        entries = Journal(_settings(settings).folder, time.time).entries()[-MOST_SHOWN:]
    except JournalError as error:
        raise CannotRun(str(error)) from error

    def show(console: Console) -> None:
        for one in entries:
            console.print(_line(one), markup=False)
        if not entries:
            console.print("nothing was ever done", markup=False)

    return Outcome({"log": entries}, 0, show)


def _line(entry: Mapping[str, Any]) -> str:
    at = entry.get("at")
    when = iso_utc(float(at)) if isinstance(at, int | float) else "?"
    told = [str(entry[key]) for key in ("id", "alert", "who", "why", "outcome", "detail") if entry.get(key)]
    return f"{when} {entry.get('run', '?')} {entry.get('event', '?'):11} {'  '.join(told)}"


def _show(console: Console, result: Mapping[str, Any]) -> None:
    for one in result.get("plan", ()) if result.get("dry_run") else ():
        back = "can be undone" if one["undo"] else "cannot be undone"
        console.print(f"would carry out {one['id']} ({back}): {one['about']}", markup=False)
    for run in result.get("runs", ()):
        console.print(f"{run['id']}: {run['outcome']}: {run['detail']}  (run {run['run']})", markup=False)
        if run["undo"] is not None:
            console.print(f"  undo: {run['undo']['outcome']}: {run['undo']['detail']}", markup=False)
    if result.get("undo"):
        console.print(f"{result['undo']['outcome']}: {result['undo']['detail']}", markup=False)
    if result["refused"]:
        console.print(f"nothing was done: {result['refused']}", markup=False, style="bold")
