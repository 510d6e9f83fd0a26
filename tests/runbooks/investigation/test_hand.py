"""An alert about data starts an investigation by itself: one at a time, bounded, its end told in the report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runbooks.investigation.hand import ALERTS, SLUGS, InvestigationHand
from runbooks.pages import load_pages
from runbooks.store import ReportStore

DATA: dict[str, Any] = {"alert": "PreprocessMismatch", "abstained": True, "verdict": {"slug": None}}
# What the real command does of it: adds to the report that it is told.
DOES = """
import sys, json, pathlib
from runbooks.store import ReportStore
args = sys.argv[1:]
report = args[args.index("--report") + 1]
ReportStore(pathlib.Path({folder!r})).amend(report, lambda one: one.update(investigation=dict(argv=args)))
print(json.dumps(dict(verdict=dict(summary="so"))))
"""


def hand(store: ReportStore, code: str, **options: Any) -> InvestigationHand:
    """Return a hand whose console is a line of Python."""
    return InvestigationHand(store, console=(sys.executable, "-c", code), **options)


def noted(store: ReportStore, report_id: str) -> dict[str, Any]:
    """Wait for what is added to a report."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found: dict[str, Any] | None = (store.load(report_id) or {}).get("investigation")
        if found is not None:
            return found
        time.sleep(0.02)
    return pytest.fail("nothing was added to the report")


def test_an_alert_about_data_is_investigated(tmp_path: Path) -> None:
    """The command is told window and report, and links itself there."""
    store = ReportStore(tmp_path)
    kept = store.save(DATA)
    one = hand(store, DOES.format(folder=str(tmp_path)))
    one.start()

    assert one.hear(kept)
    told = noted(store, kept["id"])
    one.stop()

    assert ["investigate", "--since", "1d", "--report", kept["id"], "--json"] == told["argv"]


def test_a_cause_in_the_data_is_investigated_whatever_the_alert(tmp_path: Path) -> None:
    """A verdict leads there as well as an alert; other incidents do not."""
    store = ReportStore(tmp_path)
    one = hand(store, "")
    kept = store.save(DATA | {"alert": "ErrorRateHigh", "abstained": False, "verdict": {"slug": "input_drift"}})
    other = store.save(DATA | {"alert": "ErrorRateHigh"})

    assert one.hear(kept)
    assert not one.hear(other)
    assert not hand(store, "", enabled=False).hear(kept)
    assert not hand(store, "").hear(DATA)


def test_what_does_not_fit_is_said_in_its_report(tmp_path: Path) -> None:
    """One waits; who comes behind is told what to run."""
    store = ReportStore(tmp_path)
    one = hand(store, "")
    first, second = store.save(DATA), store.save(DATA)

    assert one.hear(first)
    assert not one.hear(second)

    assert "inferdeck investigate" in noted(store, second["id"])["refused"]


def test_one_that_never_ends_is_ended(tmp_path: Path) -> None:
    """Its report says so, and the next one gets its turn."""
    store = ReportStore(tmp_path)
    kept = store.save(DATA)
    one = hand(store, "import time; time.sleep(600)", seconds_max=0.5)
    one.start()

    one.hear(kept)

    assert "no end within" in noted(store, kept["id"])["refused"]
    one.stop()


def test_one_that_fails_says_why(tmp_path: Path) -> None:
    """The command's own line stands in the report."""
    store = ReportStore(tmp_path)
    kept = store.save(DATA)
    one = hand(store, "import sys; sys.stderr.write('inferdeck: no room\\n'); sys.exit(2)")
    one.start()

    one.hear(kept)

    assert "inferdeck: no room" == noted(store, kept["id"])["refused"]
    one.stop()


def test_a_stop_ends_the_one_at_hand(tmp_path: Path) -> None:
    """The triage service does not leave a process behind."""
    store = ReportStore(tmp_path)
    kept = store.save(DATA)
    started = tmp_path / "started"
    one = hand(store, f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(600)")
    one.start()
    one.hear(kept)
    deadline = time.monotonic() + 60
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)

    one.stop()

    assert not one.working


def test_alerts_and_causes_are_ours() -> None:
    """A name that no page has would never be heard; those that are still to come are listed here."""
    pages = load_pages()

    assert set() == ALERTS - {page.alert for page in pages.values()}
    assert set() == SLUGS - set(pages) - {"input_drift", "confidence_fall"}
