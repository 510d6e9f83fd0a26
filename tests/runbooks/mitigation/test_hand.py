"""After a verdict the hand has the console act, adds what was done to the report, and does nothing by default."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runbooks.mitigation.hand import MOST_WAITING, MitigationHand
from runbooks.pages import load_pages
from runbooks.store import ReportStore

SAYS = (
    'import sys, json; print(json.dumps({"refused": None, "runs": [{"id": "restart_service", "argv": sys.argv[1:]}]}))'
)
VERDICT = {"abstained": False, "verdict": {"slug": "service_down"}}


def hand(store: ReportStore, enabled: frozenset[str] = frozenset({"restart_service"}), code: str = SAYS) -> Any:
    """Return a hand whose console is a line of Python."""
    return MitigationHand(enabled, load_pages(), store, 1.0, (sys.executable, "-c", code))


def noted(store: ReportStore, report_id: str) -> Any:
    """Wait for what is added to a report."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        report = store.load(report_id) or {}
        if "mitigated" in report:
            return report["mitigated"]
        time.sleep(0.02)
    return pytest.fail("nothing was added to the report")


def test_what_was_done_is_added_to_the_report(tmp_path: Path) -> None:
    """The console is told the alert, that nobody asks, and the report."""
    store = ReportStore(tmp_path)
    kept = store.save(VERDICT)
    one = hand(store)
    one.start()

    heard: list[Any] = []
    assert one.hear(kept, heard.append)
    told = noted(store, kept["id"])
    one.stop()

    assert [told] == heard
    assert ["mitigate", "ServiceDown", "--auto", "--json", "--report", kept["id"]] == told["runs"][0]["argv"]
    assert told["refused"] is None


@pytest.mark.parametrize(
    ("report", "enabled"),
    [
        (VERDICT, frozenset()),
        (VERDICT, frozenset({"restart_exporter"})),
        ({"abstained": True, "verdict": {"slug": None}}, frozenset({"restart_service"})),
        ({"abstained": False, "verdict": {"slug": "disk_full"}}, frozenset({"prune_archive"})),
    ],
)
def test_nothing_is_tried_without_a_verdict_and_a_switch(
    tmp_path: Path, report: dict[str, Any], enabled: frozenset[str]
) -> None:
    """Off by default, nothing on an abstention, and never what is not safe."""
    assert not hand(ReportStore(tmp_path), enabled).hear(report)


def test_a_console_that_breaks_is_said_in_the_report(tmp_path: Path) -> None:
    """Whoever reads it knows that nothing was done."""
    store = ReportStore(tmp_path)
    kept = store.save(VERDICT)
    one = hand(store, code="raise SystemExit('broken')")
    one.start()
    one.hear(kept)

    assert "the console did not answer" in noted(store, kept["id"])["refused"]
    one.stop()


def test_a_storm_of_verdicts_is_bounded_and_said(tmp_path: Path) -> None:
    """What does not fit is left out, and its report says so."""
    store = ReportStore(tmp_path)
    one = hand(store)  # not started: nothing is worked off
    kept = [store.save(VERDICT) for _ in range(MOST_WAITING + 1)]

    assert [True] * MOST_WAITING + [False] == [one.hear(report) for report in kept]
    assert f"{MOST_WAITING} others wait" == noted(store, kept[-1]["id"])["refused"]
