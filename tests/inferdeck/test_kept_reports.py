"""Kept reports are listed newest first and shown as they were, with what was done since."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inferdeck.errors import CannotRun
from inferdeck.kept_reports import list_reports, show_report
from inferdeck.result import Outcome, Stopwatch
from inferdeck.schema import validate
from inferdeck.settings import StackSettings, load_settings
from runbooks.store import ReportStore
from runbooks.unable import unable


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackSettings:
    """Return settings of a state folder with three reports, an hour apart."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    store = ReportStore(tmp_path / "reports")
    for hour in (1, 2, 3):
        report: dict[str, Any] = unable(f"Alert{hour}", 1e9, 3, ValueError("x"))
        store.save(report, datetime(2026, 1, 1, hour, tzinfo=UTC))
    return load_settings()


def shown(outcome: Outcome) -> str:
    """Return what a person sees."""
    console = Console(record=True, width=200)
    assert outcome.show is not None
    outcome.show(console)
    return console.export_text()


def test_the_newest_are_listed_first(settings: StackSettings) -> None:
    """As many as asked for, each in one line."""
    outcome = list_reports(settings, 2)

    assert ["Alert3", "Alert2"] == [one["alert"] for one in outcome.payload["reports"]]
    assert "no cause named" in shown(outcome)
    validate("reports", Stopwatch().stamp(outcome.payload))


def test_a_report_is_shown_with_what_was_done_since(settings: StackSettings) -> None:
    """Found by the beginning of its id."""
    store = ReportStore(settings.state_path / "reports")
    told = {"refused": None, "runs": [{"id": "restart_service", "outcome": "recovered", "detail": "runs again"}]}
    newest = store.ids()[0]
    assert store.amend(newest, lambda report: report.update(mitigated=told))

    outcome = show_report(settings, newest[:12])

    assert "Done by itself: restart_service recovered: runs again" in shown(outcome)
    assert "Alert3" == outcome.payload["report"]["alert"]
    validate("reports", Stopwatch().stamp(outcome.payload))


@pytest.mark.parametrize(("report_id", "said"), [("1999", "no report '1999'"), ("2026", "3 reports begin with '2026'")])
def test_an_id_that_is_not_clear_is_said(settings: StackSettings, report_id: str, said: str) -> None:
    """With where the ids are found."""
    with pytest.raises(CannotRun, match=said):
        show_report(settings, report_id)


def test_a_damaged_report_is_one_line(settings: StackSettings) -> None:
    """And not a traceback."""
    newest = ReportStore(settings.state_path / "reports").ids()[0]
    (settings.state_path / "reports" / f"{newest}.json").write_text('{"id": "x"}')

    with pytest.raises(CannotRun, match="is damaged"):
        show_report(settings, newest)
