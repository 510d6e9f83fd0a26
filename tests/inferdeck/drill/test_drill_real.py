"""One real drill with a foreign program, and the same scores from its evidence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from inferdeck.drill.command import DrillRequest, drill
from inferdeck.drill.rescore import rescore_runs
from inferdeck.drill.run import RunPlan
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from inferdeck.schema import validate
from inferdeck.settings import load_settings
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.version import ROOT

# how an outsider would write it: a script that knows only the three variables of the protocol
SCRIPT = """
import os, signal, time
os.kill(int(os.environ["INFERDECK_SERVICE_PID"]), signal.SIGKILL)
time.sleep(600)
"""


@pytest.mark.real
@pytest.mark.timeout(240)
def test_a_foreign_script_is_detected_named_and_rescored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detected by the shipped rule, named told and blind, evidence kept, the same scores again, nothing left."""
    tools = find_tools()
    if not {"prometheus", "prometheus-alertmanager"} <= set(tools):
        if os.environ.get("CI") == "true":
            pytest.fail("Prometheus and Alertmanager are missing in CI: run `make setup`")
        pytest.skip("Prometheus and Alertmanager are not here: run `make setup`")
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("INFERDECK_SERVICE_MODEL_DIR", str(ROOT / "build" / "model"))
    settings = load_settings()
    prepare_model(settings.model_path, lambda _what, _share: None)
    script = tmp_path / "outside.py"
    script.write_text(SCRIPT)
    request = DrillRequest(program=script, expect="service_down", out=tmp_path / "runs")
    lines: list[str] = []

    payload, code = drill(request, settings, tools, lines.append, plan=RunPlan(baseline_seconds=25.0))

    validate("drill", Stopwatch().stamp(payload))
    (fault,) = payload["faults"]
    assert 0 == code, (fault, lines)
    assert ("ServiceDown", "service_down", "service_down") == (
        fault["alert"],
        fault["verdict"],
        fault["blind"]["verdict"],
    )
    assert 0 < fault["detect_s"] <= fault["named_s"]
    (run,) = (tmp_path / "runs").iterdir()
    assert "001" == run.name
    truth = json.loads((run / "ground_truth.json").read_text())
    assert not truth["ready_at_end"]["service"]
    assert "service_down" == truth["report_names"]
    assert not Path(json.loads((run / "state" / "run" / "stack.json").read_text())["ring_dir"]).exists()
    # triage is told nothing of the drill: what it reads holds neither the program's name nor the truth
    assert "outside.py" not in (run / "triage_blind.json").read_text()

    again, again_code = rescore_runs(tmp_path / "runs", tools, lines.append, blind_only=False)

    assert (payload, code) == (again, again_code)


def test_a_drill_without_prometheus_is_refused(tmp_path: Path) -> None:
    """No alert can fire without it; nothing is started."""
    settings = load_settings(state_dir=tmp_path / "state")

    with pytest.raises(CannotRun, match="prometheus was not found") as caught:
        drill(DrillRequest(slugs=("service_down",)), settings, {}, lambda _line: None)

    assert "tool_install" in str(caught.value)


def test_requests_are_checked_before_anything_starts(tmp_path: Path) -> None:
    """An unknown failure, a folder in use, an expectation that names no failure."""
    settings = load_settings(state_dir=tmp_path / "state")
    script = tmp_path / "p.py"
    script.write_text("x = 1\n")
    wrong = {
        "no failure is called": DrillRequest(program=script, expect="gremlins"),
        "is not empty": DrillRequest(slugs=("service_down",), out=tmp_path),
        "nothing to drill": DrillRequest(),
    }

    for word, request in wrong.items():
        with pytest.raises(CannotRun, match=word):
            drill(request, settings, {}, lambda _line: None)

    assert not (tmp_path / "state").exists()
