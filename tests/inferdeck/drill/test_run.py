"""A run: what is known before the cause, and what its times mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import Program, read_program
from inferdeck.drill.run import judged, require_namable, settle, usual
from inferdeck.drill.watch import AlertWatch
from inferdeck.errors import CannotRun
from runbooks.pages import load_pages

Peer = tuple[str, dict[str, Any]]


def scene(url: str, state_dir: Path, answered: int = 5) -> Any:
    """Return a scene whose service has answered so often, and whose parts all answer on one port."""
    return SimpleNamespace(
        base_rate=20.0,
        stack=SimpleNamespace(poll=lambda: None),
        watch=AlertWatch(url, None),
        traffic=SimpleNamespace(tally=lambda: {"by_status": {"200": answered} if answered else {}}),
        plan=SimpleNamespace(state_dir=state_dir),
    )


def test_alerts_of_the_baseline_are_told_seen_or_only_recorded(peer: Peer, tmp_path: Path) -> None:
    """What fires before the cause says nothing about the cause; the watchdog does not count."""
    url, answers = peer
    one = {"alertname": "DiskFull", "kind": "failure", "slug": "disk_full"}
    watchdog = {"alertname": "Watchdog", "kind": "meta"}
    answers["/api/v1/alerts"] = {"data": {"alerts": [{"labels": x, "state": "firing"} for x in (one, watchdog)]}}
    answers["/api/v1/query"] = {"data": {"result": [{"metric": {"alertname": "SlowStart"}, "value": [1, "2"]}]}}
    said: list[str] = []

    early = settle(scene(url, tmp_path), 0.05, said.append)

    assert ["DiskFull", "SlowStart"] == [event["alertname"] for event in early]
    assert "a miss: DiskFull, SlowStart fired before the cause" == said[-1]


def test_a_healthy_baseline_has_none(peer: Peer, tmp_path: Path) -> None:
    """And a service or a Prometheus that does not answer is told instead."""
    url, answers = peer
    answers["/api/v1/alerts"] = {"data": {"alerts": []}}
    with pytest.raises(CannotRun, match="does not tell which alerts fired"):
        settle(scene(url, tmp_path), 0.05, lambda _line: None)
    answers["/api/v1/query"] = {"data": {"result": []}}

    assert [] == settle(scene(url, tmp_path), 0.05, lambda _line: None)
    with pytest.raises(CannotRun, match="answers no request"):
        settle(scene(url, tmp_path, answered=0), 0.05, lambda _line: None)


@pytest.mark.parametrize(
    ("told", "named_s"),
    [
        ({"verdict": {"slug": "service_down", "layer": "runtime", "confidence": 0.9}}, 32.0),
        ({"abstained": True, "verdict": {"slug": None}}, None),
        (None, None),
    ],
)
def test_a_time_of_naming_needs_a_name(told: dict[str, Any] | None, named_s: float | None) -> None:
    """Triage that abstained, or was not asked for want of an alert, named nothing at any time."""
    played = {
        "begin": 100.0,
        "early": [],
        "fired": ("ServiceDown", 130.0) if told else None,
        "answers": {"told": told, "blind": {"abstained": True}, "named_unix": 132.0},
        "baselines": {"largest_z": "service_down"},
    }

    fault = judged(Program(Path("p.py"), "service_down", "", frozenset()), 1, played)

    assert (30.0 if told else None, named_s) == (fault.detect_s, fault.named_s)
    assert not fault.simulated
    assert {"largest_z": "service_down"} == fault.to_json()["baselines"]


def test_only_what_a_runbook_names_can_be_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another slug would be a miss whatever happens; the line lists those that have a page."""
    pages = {slug: page for slug, page in load_pages().items() if slug != "gpu_lost"}
    monkeypatch.setattr("runbooks.pages.load_pages", lambda: pages)
    require_namable("event_loop_blocked")
    for slug, line in (("gpu_lost", "no runbook names 'gpu_lost'"), ("latency_objective", "no failure"), ("x", "no f")):
        with pytest.raises(CannotRun, match=line) as caught:
            require_namable(slug)
        assert "event_loop_blocked" in caught.value.mend
        assert "gpu_lost" not in caught.value.mend


def test_what_belongs_to_the_machine_is_there_until_the_run_ends(tmp_path: Path) -> None:
    """Entered with the stack, left with it; a program without it changes nothing, one that fails is said."""
    noted = tmp_path / "noted"
    file = tmp_path / "p.py"
    text = (
        'from contextlib import contextmanager\nSLUG = "a"\n@contextmanager\ndef usual(stack):\n'
        "    stack.write_text('there')\n    yield\n    stack.write_text('gone')\n"
    )
    machine: Any = SimpleNamespace(handle=noted)
    file.write_text(text)
    with usual(read_program(file), machine):
        assert "there" == noted.read_text()
    assert "gone" == noted.read_text()
    file.write_text('SLUG = "a"\ncause = None\n')
    with usual(read_program(file), machine):
        assert "gone" == noted.read_text()
    file.write_text(text.replace("stack.write_text", "stack.no_such"))
    with pytest.raises(CannotRun, match="AttributeError"), usual(read_program(file), machine):
        pass
