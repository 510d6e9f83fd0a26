"""Kept evidence of every kind of run is scored again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from inferdeck.drill.evidence import save_json, save_truth
from inferdeck.drill.rescore import rescore_runs
from inferdeck.drill.twin import silence_found
from inferdeck.errors import CannotRun
from inferdeck.stack.commands import find_tools

ANSWERS: dict[str, Any] = {"at_unix": 1_700_000_000.0, "asked_unix": 1_700_000_001.0, "alive": {}}
CLEAN: dict[str, Any] = {
    "rules_loaded": 11,
    "rules_shipped": 11,
    "failed_scrapes": 0,
    "watchdog_firing": True,
    "false_alerts": 0,
    "false_verdicts": 0,
    "proof": {"slug": "event_loop_blocked", "named": True, "alert": "EventLoopBlocked"},
}


@pytest.fixture
def tools() -> dict[str, str]:
    """Return where Prometheus is."""
    tools = find_tools()
    if "prometheus" not in tools:
        if os.environ.get("CI") == "true":
            pytest.fail("Prometheus is missing in CI: run `make setup`")
        pytest.skip("Prometheus is not here: run `make setup`")
    return tools


def kept(runs: Path, number: str, truth: dict[str, Any]) -> None:
    """Write the evidence of a run in which nothing was scraped and no request was recorded."""
    (runs / number / "rings").mkdir(parents=True)
    (runs / number / "prometheus").mkdir()
    save_truth(runs / number, ANSWERS, truth)


@pytest.mark.real
def test_twins_and_programs_of_silence_are_asked_about_again(tmp_path: Path, tools: dict[str, str]) -> None:
    """Over nothing triage abstains: silent stays silent, and what was claimed at the time stays claimed."""
    twin = silence_found("service_down", 1, [], [], watchdog_firing=True)
    loud = silence_found("traffic_surge", 1, ["DiskFull"], ["disk_full"], watchdog_firing=True)
    kept(tmp_path, "001", {"twin": twin, "claimed": []})

    quiet = rescore_runs(tmp_path, tools, lambda _line: None, blind_only=False)
    kept(tmp_path, "002", {"silence": loud, "claimed": ["disk_full"]})
    both = rescore_runs(tmp_path, tools, lambda _line: None, blind_only=False)

    assert ([twin], [], 0) == (quiet[0]["twins"], quiet[0]["silences"], quiet[1])
    assert ([twin], [loud], 1) == (both[0]["twins"], both[0]["silences"], both[1])


@pytest.mark.real
def test_the_proof_of_a_clean_time_is_judged_anew(tmp_path: Path, tools: dict[str, str]) -> None:
    """Its evidence holds nothing, so today's triage cannot name it: the counts stay, the time is clean no longer."""
    kept(tmp_path, "clean", {"clean": CLEAN | {"not_clean": []}})

    payload, code = rescore_runs(tmp_path, tools, lambda _line: None, blind_only=False)

    assert ["the failure at its end was not named"] == payload["clean"]["not_clean"]
    assert ({**CLEAN["proof"], "named": False}, 0, 1) == (
        payload["clean"]["proof"],
        payload["clean"]["false_alerts"],
        code,
    )


@pytest.mark.parametrize(
    ("truth", "word"),
    [
        ({}, "lacks one of fault, twin, silence, clean"),
        ([], "lacks one of"),
        ({"fault": None}, "lacks one of"),
        ({"twin": {"slug": "x"}}, "lacks at_unix, asked_unix, rings_alive, run, alerts, watchdog_firing"),
    ],
)
def test_a_truth_that_lacks_something_is_one_line(tmp_path: Path, truth: Any, word: str) -> None:
    """Before anything is started."""
    (tmp_path / "001").mkdir()
    save_json(tmp_path / "001" / "ground_truth.json", truth)

    with pytest.raises(CannotRun, match=word):
        rescore_runs(tmp_path, {"prometheus": "/none"}, lambda _line: None, blind_only=False)
