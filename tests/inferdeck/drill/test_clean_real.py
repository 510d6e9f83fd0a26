"""A clean time that is not clean says so: a real failure among the programs of silence is counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from inferdeck.drill.clean import CleanPlan, run_clean
from inferdeck.drill.command import DrillRequest
from inferdeck.drill.program import failures_folder, read_program
from inferdeck.drill.rescore import rescore_runs
from inferdeck.drill.run import RunPlan
from inferdeck.result import Stopwatch
from inferdeck.schema import validate
from inferdeck.settings import load_settings
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.version import ROOT


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_real_failure_in_a_clean_time_is_a_false_alert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is killed in it: alert and verdict are counted, the proof is missed, and the exit code is 1."""
    tools = find_tools()
    if not {"prometheus", "prometheus-alertmanager"} <= set(tools):
        if os.environ.get("CI") == "true":
            pytest.fail("Prometheus and Alertmanager are missing in CI: run `make setup`")
        pytest.skip("Prometheus and Alertmanager are not here: run `make setup`")
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("INFERDECK_SERVICE_MODEL_DIR", str(ROOT / "build" / "model"))
    settings = load_settings()
    prepare_model(settings.model_path, lambda _what, _share: None)
    killer = read_program(failures_folder() / "service_down.py")
    plan = CleanPlan(1.2, [killer], RunPlan(baseline_seconds=0.0, detect_timeout_seconds=5.0))

    payload, code = run_clean(plan, DrillRequest(out=tmp_path / "runs"), settings, tools, lambda _line: None)

    validate("drill", Stopwatch().stamp(payload))
    clean = payload["clean"]
    alerts = json.loads((tmp_path / "runs" / "clean" / "false_alerts.json").read_text())
    assert "ServiceDown" in {event["alertname"] for event in alerts}
    assert clean["false_alerts"] == len(alerts) > 0
    assert clean["false_verdicts"] > 0
    assert ["service_down"] == [act["slug"] for act in clean["acts"]]
    assert not clean["proof"]["named"]
    assert 1 == code

    assert (payload, code) == rescore_runs(tmp_path / "runs", tools, lambda _line: None, blind_only=False)
