"""Behind `inferdeck reports`: the reports that triage kept, listed and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inferdeck.errors import CannotRun
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["list_reports", "show_report"]


def list_reports(settings: StackSettings, count: int) -> Outcome:
    """List the newest kept reports.

    Args:
        settings: Where the state folder is.
        count: How many.
    """
    from runbooks.store import ReportStore

    found = ReportStore(settings.state_path / "reports").overview(count)

    def show(console: Console) -> None:
        for one in found:
            console.print(_line(one), markup=False)
        if not found:
            console.print(f"no report in {settings.state_path / 'reports'}", markup=False)

    return Outcome({"reports": found}, 0, show)


def _line(report: Mapping[str, Any]) -> str:
    verdict = report.get("verdict") or {}
    named = "no cause named" if report.get("abstained") else f"{verdict.get('slug')} ({verdict.get('confidence')})"
    return f"{report['id']}  {report.get('alert') or 'no alert':24} {named}"


def show_report(settings: StackSettings, report_id: str) -> Outcome:
    """Show a kept report as it was, with what was done since.

    Args:
        settings: Where the state folder is.
        report_id: Its id; the beginning of one will do when it is the only one.

    Raises:
        CannotRun: If there is none, or several begin so.
    """
    from runbooks.report import render
    from runbooks.store import ReportStore

    store = ReportStore(settings.state_path / "reports")
    fitting = [one for one in store.ids() if one.startswith(report_id)]
    report = store.load(fitting[0]) if len(fitting) == 1 else None
    if report is None:
        what = f"{len(fitting)} reports begin with" if fitting else "no report"
        raise CannotRun(f"{what} {report_id!r}", "`inferdeck reports` lists them")
    try:
        text = render(report)
    except (KeyError, TypeError, AttributeError) as error:
        raise CannotRun(
            f"report {fitting[0]} is damaged ({type(error).__name__}: {error})", "look at its file"
        ) from error
    return Outcome({"report": report}, 0, lambda console: console.print(text, markup=False))
