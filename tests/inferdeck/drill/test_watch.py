"""The timeline notes changes once, and only real firings count as alerts."""

from __future__ import annotations

from typing import Any

import pytest

from inferdeck.drill.reports import await_report
from inferdeck.drill.watch import AlertWatch, false_alerts, query_value, recorded_firings
from inferdeck.errors import CannotRun
from inferdeck.stack.ports import free_ports

Answers = dict[str, Any]


def alerts(*states: tuple[str, str, str]) -> dict[str, Any]:
    """Return Prometheus' answer for (name, kind, state)."""
    found = [
        {"labels": {"alertname": name, "kind": kind, "slug": name.lower()}, "state": s} for name, kind, s in states
    ]
    return {"data": {"alerts": found}}


def test_each_change_is_noted_once(peer: tuple[str, Answers]) -> None:
    """Pending, firing, resolved: three entries however often one looks; the labels survive."""
    url, answers = peer
    now = [100.0]
    watch = AlertWatch(url, None, clock=lambda: now[0])

    for state in ("pending", "pending", "firing", "firing", ""):
        answers["/api/v1/alerts"] = alerts(*([("A", "failure", state)] if state else []))
        watch.look()
        now[0] += 1

    assert [(100.0, "pending"), (102.0, "firing"), (104.0, "resolved")] == [
        (event["at_unix"], event["state"]) for event in watch.timeline
    ]
    assert {"alertname": "A", "kind": "failure", "slug": "a"} == watch.timeline[-1]["labels"]


def test_both_sides_are_watched(peer: tuple[str, Answers]) -> None:
    """What Alertmanager holds is noted apart from what Prometheus fires."""
    url, answers = peer
    answers["/api/v1/alerts"] = alerts(("A", "failure", "firing"))
    answers["/api/v2/alerts"] = [{"labels": {"alertname": "A"}}]
    watch = AlertWatch(url, url)

    assert ["A"] == [labels["alertname"] for labels in watch.look()]
    assert ["prometheus", "alertmanager"] == [event["where"] for event in watch.timeline]


def test_a_silent_prometheus_is_no_alert_and_resolves_nothing(peer: tuple[str, Answers]) -> None:
    """When it cannot be asked, what was known stays known."""
    url, answers = peer
    answers["/api/v1/alerts"] = alerts(("A", "failure", "firing"))
    watch = AlertWatch(url, None)
    watch.look()
    del answers["/api/v1/alerts"]

    assert [] == watch.look()
    assert 1 == len(watch.timeline)


def test_meta_alerts_and_pending_ones_are_no_false_alerts(peer: tuple[str, Answers]) -> None:
    """The watchdog always fires; pending is no alert; a symptom is one."""
    url, answers = peer
    answers["/api/v1/alerts"] = alerts(
        ("Watchdog", "meta", "firing"), ("B", "failure", "pending"), ("C", "symptom", "firing")
    )
    watch = AlertWatch(url, None)
    watch.look()

    assert ["C"] == [event["alertname"] for event in false_alerts(watch.timeline)]


def test_an_alert_that_came_and_went_unseen_is_found_in_what_prometheus_recorded(peer: tuple[str, Answers]) -> None:
    """As an entry of a timeline; a Prometheus that does not answer is told: it may have recorded anything."""
    url, answers = peer
    (port,) = free_ports(1)
    answers["/api/v1/query"] = {
        "data": {"result": [{"metric": {"alertname": "A", "kind": "failure"}, "value": [1, "3"]}]}
    }

    found = recorded_firings(url, 60.0)

    assert ["A"] == [event["alertname"] for event in false_alerts(found)]
    with pytest.raises(CannotRun, match="does not tell which alerts fired"):
        recorded_firings(f"http://127.0.0.1:{port}", 60.0)


def test_a_query_without_an_answer_is_none(peer: tuple[str, Answers]) -> None:
    """No series and no Prometheus are both absent, never 0."""
    url, answers = peer
    answers["/api/v1/query"] = {"data": {"result": []}}
    (port,) = free_ports(1)

    assert query_value(url, "up") is None
    assert query_value(f"http://127.0.0.1:{port}", "up") is None

    answers["/api/v1/query"] = {"data": {"result": [{"value": [1, "2.5"]}]}}
    assert 2.5 == query_value(url, "up")


def test_a_report_that_names_the_slug_is_waited_for(peer: tuple[str, Answers]) -> None:
    """The first report about something else is passed over, but is returned when nothing better comes."""
    url, answers = peer
    other = {"id": "1", "verdict": {"slug": None}}
    answers["/reports"] = {"reports": [other]}
    answers["/reports/1"] = other
    answers["/reports/2"] = {"id": "2", "verdict": {"slug": "service_down"}}
    ticks = iter(range(100))

    def sleep(_seconds: float) -> None:
        answers["/reports"] = {"reports": [other, answers["/reports/2"]]}

    assert "2" == (await_report(url, "service_down", 50, lambda: next(ticks), sleep) or {})["id"]
    assert "1" == (await_report(url, "memory_leak", 5, lambda: next(ticks), lambda _s: None) or {})["id"]
    answers["/reports"] = {"reports": []}
    assert await_report(url, "memory_leak", 5, lambda: next(ticks), lambda _s: None) is None


def test_a_triage_service_that_does_not_answer_is_a_clear_line() -> None:
    """A dead listener is told, not waited for until the end of time."""
    (port,) = free_ports(1)

    with pytest.raises(CannotRun, match="does not list its reports"):
        await_report(f"http://127.0.0.1:{port}", "x", 5)
