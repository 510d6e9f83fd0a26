"""What the product promises, run as a person would run it: demo, drill, silence. Minutes each, with the real stack."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from inferdeck.demo_view import show_demo
from inferdeck.schema import validate

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def inferdeck(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    """Run the console in this checkout with state and temporary folders of its own."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "inferdeck"), *words],
        cwd=ROOT,
        env={**os.environ, "INFERDECK_STATE_DIR": str(state), "TMPDIR": str(state)},
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the JSON that a verb printed, with its log in sight when there is none."""
    assert done.stdout, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of the processes that have *folder* in their environment, this one apart."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and any(str(folder) in value for value in process.environ().values()):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def test_the_demo_names_the_caused_cause_and_leaves_nothing_running(tmp_path: Path) -> None:
    """`inferdeck demo` exits 0, names the cause, draws a slow session's waterfall, and ends all that it started."""
    done = inferdeck("demo", "--json", state=tmp_path)
    found = result(done)
    console = Console(file=io.StringIO(), width=120)
    show_demo(console, found)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    validate("demo", found)
    assert "event_loop_blocked" == found["triage"]["verdict"]["slug"] == found["caused"]
    assert "model.forward" in console.file.getvalue()  # type: ignore[attr-defined]
    assert (0, []) == (found["left_running"], processes_of(tmp_path))
    assert [] == list(tmp_path.glob("inferdeck-demo-*"))


def test_failures_are_detected_and_named_also_blind(tmp_path: Path) -> None:
    """Both failures of the spine: top1 and top1_blind 1.0, and the kept evidence scores the same again."""
    done = inferdeck("drill", "event_loop_blocked", "service_down", "--json", state=tmp_path)
    found = result(done)

    assert (1.0, 1.0) == (found["top1"], found["top1_blind"]), json.dumps(found)[:4000]
    assert done.returncode == 0
    assert {"EventLoopBlocked", "ServiceDown"} == {one["alert"] for one in found["faults"]}

    again = result(inferdeck("drill", "--rescore", found["runs_dir"], "--json", state=tmp_path))
    scores = ("top1", "top1_blind", "avg3", "layer_top1", "abstain_rate", "wrong_and_confident")
    assert {name: found[name] for name in scores} == {name: again[name] for name in scores}


def test_three_clean_minutes_with_a_surge_raise_nothing(tmp_path: Path) -> None:
    """`inferdeck drill --clean 3` has no false alert and no false verdict; the failure at its end is named."""
    done = inferdeck("drill", "--clean", "3", "--json", state=tmp_path)
    clean = result(done)["clean"]

    assert {"false_alerts": 0, "false_verdicts": 0, "watchdog_firing": True} == {
        name: clean[name] for name in ("false_alerts", "false_verdicts", "watchdog_firing")
    }, json.dumps(clean)
    assert clean["surge_ratio"] >= 8
    assert ([], 0) == (clean["not_clean"], clean["failed_scrapes"])
    assert clean["proof"]["named"]
    assert done.returncode == 0
