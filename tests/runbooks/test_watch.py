"""The thread that works incidents off: nothing that one incident holds ends it, and none ends without a report."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runbooks.inbox import Inbox, Incident
from runbooks.payloads import parse_payload
from runbooks.report import render
from runbooks.store import ReportStore
from runbooks.watch import MOST_TRIES, TriageWatch

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "inferdeck/schemas/triage.schema.json").read_text(encoding="utf-8"))


def incident(inbox: Inbox, alert: str = "EventLoopBlocked", fingerprint: str = "f1") -> Incident:
    """Have an alert wait."""
    one = {
        "status": "firing",
        "labels": {"alertname": alert},
        "startsAt": "2026-11-30T08:02:30Z",
        "fingerprint": fingerprint,
    }
    (taken,) = inbox.accept(parse_payload({"version": "4", "status": "firing", "alerts": [one], "groupKey": "g"}))
    return taken


def named(alert: str, at: float) -> Mapping[str, Any]:
    """Stand for the engine."""
    return {"alert": alert, "at": at, "abstained": False, "verdict": {"slug": "event_loop_blocked"}}


def watch(folder: Path, triage: Callable[[str, float], Mapping[str, Any]] = named) -> TriageWatch:
    """Return a watch over a state folder."""
    return TriageWatch(Inbox(folder / "triage"), ReportStore(folder / "reports"), triage, retry_seconds=0.01)


def until(true: Callable[[], object]) -> bool:
    """Wait, ten seconds at most, and tell whether it came about."""
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(true())


@pytest.mark.parametrize("starts_at", [253_402_344_000.0, 1e300, -1e12, float("nan"), "yesterday", None])
def test_an_incident_file_with_an_impossible_time_does_not_end_the_thread(tmp_path: Path, starts_at: object) -> None:
    """It gets its report and is gone from the folder, and the incident after it is looked at as always."""
    first = Inbox(tmp_path / "triage")
    poison = incident(first)
    path = tmp_path / "triage" / f"{poison.name}.incident"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"starts_at": starts_at}), encoding="utf-8")
    incident(first, fingerprint="f2")
    watching = watch(tmp_path)
    watching.start()
    try:
        assert until(lambda: not len(watching.inbox))
        alive = watching.alive
    finally:
        watching.stop()

    assert alive
    assert 2 == len(watching.store.ids())
    assert [] == list((tmp_path / "triage").glob("*.incident"))


def test_an_old_report_that_cannot_be_listed_away_costs_nothing(tmp_path: Path) -> None:
    """Cleaning up raises what is no StoreError: the report is kept all the same, and the thread goes on."""

    class NoListing(ReportStore):
        def _written(self) -> list[str]:
            raise PermissionError("by hand")

    watching = TriageWatch(Inbox(tmp_path / "triage"), NoListing(tmp_path / "reports"), named)
    watching.work(incident(watching.inbox))

    assert 1 == watching.runs["named"]
    assert 1 == len(list((tmp_path / "reports").glob("*.json")))


def test_a_triage_that_keeps_failing_leaves_a_report_that_says_so(tmp_path: Path) -> None:
    """Repeats of its alert start nothing, so that the failure itself is the report, with reason and page."""

    def broken(alert: str, at: float) -> Mapping[str, Any]:
        raise RuntimeError("no such\n  source")

    watching = watch(tmp_path, broken)
    waiting = incident(watching.inbox)
    for _ in range(MOST_TRIES):
        watching.work(waiting)
    (report_id,) = watching.store.ids()
    report = watching.store.load(report_id)

    assert report is not None
    Draft202012Validator(SCHEMA).validate(report)
    assert (True, "EventLoopBlocked", "runbooks/EventLoopBlocked.md") == (
        report["abstained"],
        report["alert"],
        report["runbook"],
    )
    assert "failed 3 times, the last time with RuntimeError: no such source" in render(report)
    assert {"failed": 1, "named": 0, "abstained": 0} == watching.runs
    assert 0 == len(watching.inbox)


def test_a_name_that_is_a_path_leads_to_no_page(tmp_path: Path) -> None:
    """The report of a failure names a page only when the alert has one."""

    def broken(alert: str, at: float) -> Mapping[str, Any]:
        raise RuntimeError

    watching = watch(tmp_path, broken)
    waiting = incident(watching.inbox, alert="../runbooks/EventLoopBlocked")
    for _ in range(MOST_TRIES):
        watching.work(waiting)
    report = watching.store.load(watching.store.ids()[0])

    assert report is not None
    assert report["runbook"] is None


def test_tries_are_forgotten_with_their_incident(tmp_path: Path) -> None:
    """An incident that failed once and then succeeded has all its tries when it comes back."""
    fails = [True, False, True, True, False]
    watching = watch(tmp_path)

    def shaky(alert: str, at: float) -> Mapping[str, Any]:
        if fails.pop(0):
            raise RuntimeError("for a moment")
        return named(alert, at)

    watching = watch(tmp_path, shaky)
    waiting = incident(watching.inbox)
    for _ in range(5):
        watching.work(waiting)

    assert {"failed": 0, "named": 2, "abstained": 0} == watching.runs


def test_an_inbox_that_stumbles_does_not_end_the_thread(tmp_path: Path) -> None:
    """Whatever is raised outside of a triage, the thread comes back to the inbox."""
    failing = threading.Event()

    class Stumbling(Inbox):
        def oldest(self, timeout_seconds: float) -> Incident | None:
            if not failing.is_set():
                failing.set()
                raise OSError("by hand")
            return super().oldest(timeout_seconds)

    inbox = Stumbling(tmp_path / "triage")
    watching = TriageWatch(inbox, ReportStore(tmp_path / "reports"), named, retry_seconds=0.01)
    incident(inbox)
    watching.start()
    try:
        assert until(lambda: watching.runs["named"])
    finally:
        watching.stop()


def test_texts_that_utf8_cannot_hold_do_not_cost_the_report(tmp_path: Path) -> None:
    """Half a surrogate pair in a row's label is written as a question mark."""
    kept = ReportStore(tmp_path).save({"alert": "A\ud800", "abstained": True})

    assert "A?" == json.loads(Path(kept["report"]).read_bytes())["alert"]


def test_a_time_far_ahead_is_looked_at_now(tmp_path: Path) -> None:
    """A sender whose clock is ahead gets a triage of the present."""
    seen: list[float] = []

    def look(alert: str, at: float) -> Mapping[str, Any]:
        seen.append(at)
        return named(alert, at)

    watching = watch(tmp_path, look)
    watching.work(replace(incident(watching.inbox), starts_at=time.time() + 3600))

    assert abs(seen[0] - time.time()) < 60
