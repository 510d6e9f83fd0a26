"""Mitigations on a real stack: a killed service comes back by itself, an exporter by hand, a full disk gets room."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from inferdeck.stack.commands import prepare_model
from runbooks.mitigation.recovery import AlertExpression
from tests.failures import disk_full
from tests.inferdeck.stack.test_up_down import MODEL, Console, need_prometheus

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """Yield a console over a model with one mitigation switched on, and stop whatever it started."""
    need_prometheus()
    prepare_model(MODEL, lambda _what, _share: None)
    console = Console(tmp_path)
    console.variables["INFERDECK_TRIAGE_MITIGATE"] = "restart_service"
    yield console
    console.run("down")


def until(what: Callable[[], Any], seconds: float) -> Any:
    """Wait until there is something, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.5)
    return pytest.fail(f"waited {seconds} s in vain")


def pid_of(status: dict[str, Any], part: str) -> int:
    """Return the process of a part."""
    return int(next(one["pid"] for one in status["parts"] if one["name"] == part))


def reported(state_dir: Path) -> dict[str, Any] | None:
    """Return the report of the dead service once what was done has been added."""
    for path in (state_dir / "reports").glob("*.json"):
        report: dict[str, Any] = json.loads(path.read_text())
        if report["alert"] == "ServiceDown" and "mitigated" in report:
            return report
    return None


def test_a_killed_service_comes_back_by_itself_and_an_exporter_by_hand(console: Console) -> None:
    """Kill, alert, verdict, restart, recovery: in the report and in the journal; what is off is left to people."""
    started = console.result("up")
    state_dir = Path(console.variables["INFERDECK_STATE_DIR"])
    assert 200 == console.ask()
    expression = AlertExpression(started["urls"]["prometheus"])
    until(lambda: expression.holds("ServiceDown") is False, 30)
    idle = console.result("mitigate", "ServiceDown", "--yes")
    before = console.result("status")
    os.kill(pid_of(before, "service"), signal.SIGKILL)

    report = until(lambda: reported(state_dir), 120)

    assert "not true now" in idle["refused"]
    (run,) = report["mitigated"]["runs"]
    assert ("restart_service", "recovered", None) == (run["id"], run["outcome"], report["mitigated"]["refused"])
    assert 200 == console.ask()
    middle = console.result("status")
    assert pid_of(before, "service") != pid_of(middle, "service")

    # an exporter that hangs: its process is there, and does not answer
    os.kill(pid_of(middle, "exporter"), signal.SIGSTOP)
    until(lambda: expression.holds("ExporterUnreachable"), 60)
    by_itself = console.result("mitigate", "ExporterUnreachable", "--auto")
    dry = console.result("mitigate", "ExporterUnreachable", "--dry-run")
    asked = console.run("mitigate", "ExporterUnreachable", "--json")
    by_hand = console.result("mitigate", "ExporterUnreachable", "--yes")
    log = console.result("mitigate", "--log")["log"]

    assert "switched off" in by_itself["refused"]
    assert (["restart_exporter"], []) == ([one["id"] for one in dry["plan"]], dry["runs"])
    assert (2, True) == (asked[0], "add --yes" in asked[2])
    assert [("restart_exporter", "recovered")] == [(one["id"], one["outcome"]) for one in by_hand["runs"]], by_hand
    assert pid_of(middle, "exporter") != pid_of(console.result("status"), "exporter")
    assert httpx.get(started["urls"]["exporter"] + "/healthz", trust_env=False).status_code == 200
    events = [(one["event"], one.get("who"), one.get("outcome")) for one in log]
    assert [
        ("intent", "automatic", None),
        ("result", None, "recovered"),
        ("intent", f"user {os.getuid()}", None),
        ("result", None, "recovered"),
    ] == events
    assert report["id"] == log[0]["report"]


def test_a_full_disk_gets_room(console: Console) -> None:
    """A leftover of a killed writer goes, the journal is written on the full disk, and the alert's expression ends."""
    if reason := disk_full.cannot_cause():
        pytest.skip(reason)
    console.variables["INFERDECK_TRIAGE_MITIGATE"] = ""
    started = console.result("up")
    state_dir = Path(console.variables["INFERDECK_STATE_DIR"])
    assert (state_dir / "mitigations" / "reserve").is_file()
    with disk_full.small_disk(state_dir):
        # as the triage service found it at its start
        (state_dir / "mitigations" / "reserve").write_bytes(bytes(64 << 10))
        leftover = state_dir / f".exporter.state.{'0' * 16}"
        leftover.write_bytes(bytes(2 << 20))
        os.utime(leftover, (1, 1))
        disk_full.fill(state_dir / "core.dump", None)
        expression = AlertExpression(started["urls"]["prometheus"])
        until(lambda: expression.holds("DiskFull"), 60)

        result = console.result("mitigate", "DiskFull", "--yes")
        log = console.result("mitigate", "--log")["log"]

    (run,) = result["runs"]
    assert ("drop_leftovers", "recovered") == (run["id"], run["outcome"]), run
    assert "1 leftovers deleted" in run["detail"]
    assert ["intent", "result"] == [one["event"] for one in log]
