"""Whatever is alerted or named in a healthy stack is heard once, even when nobody looked at that moment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from inferdeck.drill.ear import Ear
from inferdeck.drill.watch import AlertWatch


def scene(url: str, ring_dir: Path) -> Any:
    """Return a scene whose parts all answer on one port."""
    return SimpleNamespace(
        stack=SimpleNamespace(poll=lambda: None),
        watch=AlertWatch(url, None),
        plan=SimpleNamespace(url=lambda _port: url, ring_dir=ring_dir),
    )


def firing(*names: str) -> dict[str, Any]:
    """Return what Prometheus says about firing alerts; those of the watchdog are meta."""
    kinds = {"Watchdog": "meta"}
    labels = [{"alertname": name, "kind": kinds.get(name, "failure")} for name in names]
    return {"data": {"alerts": [{"labels": one, "state": "firing"} for one in labels]}}


def test_alerts_are_heard_once_and_also_those_that_only_prometheus_recorded(
    peer: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    """A was seen, B came and went between two looks; the watchdog is no false alert, and proves that one could hear."""
    url, answers = peer
    answers["/api/v1/alerts"] = firing("Watchdog", "A")
    recorded = [{"metric": {"alertname": name, "kind": "failure"}, "value": [1, "2"]} for name in ("A", "B")]
    answers["/api/v1/query"] = {"data": {"result": recorded}}
    ear = Ear(scene(url, tmp_path))

    ear.until(0.05)

    assert ["A", "B"] == [event["alertname"] for event in ear.alerts()]
    assert ear.watchdog


def test_without_the_watchdog_it_is_known_that_nothing_could_be_heard(
    peer: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Silence of a Prometheus without rules is no silence."""
    url, answers = peer
    answers["/api/v1/alerts"] = firing()
    answers["/api/v1/query"] = {"data": {"result": []}}
    ear = Ear(scene(url, tmp_path))

    ear.until(0.05)

    assert [] == ear.alerts()
    assert not ear.watchdog


def test_reports_that_name_something_are_claims_and_abstained_ones_are_none(
    peer: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Triage that is asked over nothing abstains as well."""
    url, answers = peer
    named, abstained = {"id": "1", "verdict": {"slug": "service_down"}}, {"id": "2", "verdict": {"slug": None}}
    answers["/reports"] = {"reports": [named, abstained]}
    ear = Ear(scene(url, tmp_path))

    ear.ask()

    assert [named] == ear.claims()
