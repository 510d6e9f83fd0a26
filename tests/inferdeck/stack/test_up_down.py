"""The whole stack for real: up, status, look-up, second up, dead part, down; and what happens without Prometheus."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from inferdeck.schema import validate
from inferdeck.settings import PORT_FIELDS
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.stack.ports import free_ports
from inferdeck.version import ROOT

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
MODEL = ROOT / "build" / "model"
SESSION = "abcdefghijklmnop1234"
# started where it is there; tests/inferdeck/test_trace_jaeger_real.py sees to it that it is
JAEGER = {"jaeger"} & find_tools().keys()


class Console:
    """The console on a state folder and ports of its own."""

    def __init__(self, folder: Path) -> None:
        ports = dict(zip(PORT_FIELDS, free_ports(len(PORT_FIELDS)), strict=True))
        self.service_port = ports["service_port"]
        self.variables = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")}
        self.variables |= {f"INFERDECK_STACK_{name.upper()}": str(port) for name, port in ports.items()}
        self.variables |= {
            "INFERDECK_STATE_DIR": str(folder / "state"),
            "INFERDECK_RING_DIR": str(folder / "rows"),
            "INFERDECK_SERVICE_MODEL_DIR": str(MODEL),
            "PYTHONPATH": str(ROOT),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a verb and return its process."""
        argv = [sys.executable, "-P", "-m", "inferdeck", *arguments]
        pipe = subprocess.PIPE
        # A suite that a shell runs in the background has SIGINT ignored, and its children inherit that.
        listening = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(argv, env=self.variables, stdout=pipe, stderr=pipe, text=True)
        finally:
            signal.signal(signal.SIGINT, listening)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a verb to its end."""
        child = self.start(*arguments)
        out, err = child.communicate(timeout=150)
        return child.returncode, out, err

    def result(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Run a verb with --json and return its checked result."""
        _, out, err = self.run(verb, *arguments, "--json")
        assert out, err
        result: dict[str, Any] = json.loads(out)
        validate(verb, result)
        return result

    def ask(self) -> int:
        """Send one review and return the status."""
        body = json.dumps({"text": "great book", "product_id": "AB12345678"}).encode()
        head = (
            f"POST /v1/sentiment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"X-Session-Id: {SESSION}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.service_port), timeout=10) as connection:
            connection.sendall(head.encode() + body)
            return int(connection.recv(4096).split(b" ")[1])


@pytest.fixture(scope="session")
def model() -> None:
    """Train the model when there is none."""
    prepare_model(MODEL, lambda _what, _share: None)


@pytest.fixture
def console(tmp_path: Path, model: None) -> Iterator[Console]:
    """Yield a console and stop whatever it started."""
    console = Console(tmp_path)
    yield console
    console.run("down")


def need_prometheus() -> None:
    """Skip without Prometheus; in CI it must be there."""
    if {"prometheus", "prometheus-alertmanager"} <= set(find_tools()):
        return
    if os.environ.get("CI") == "true":
        pytest.fail("Prometheus and Alertmanager are missing in CI: run `make setup`")
    pytest.skip("Prometheus and Alertmanager are not here: run `make setup`")


def parts(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a status' parts by name."""
    return {part["name"]: part for part in status["parts"]}


def test_a_stack_from_up_to_down(console: Console, tmp_path: Path) -> None:
    """Up is ready when it returns; a request is found; a second up is refused; down stops all and keeps the rows."""
    need_prometheus()
    up = console.result("up")
    assert {"service", "exporter", "triage", "alertmanager", "prometheus"} | JAEGER == set(up["urls"])
    assert {} == up["missing"]

    assert 200 == console.ask()
    found = console.result("trace", SESSION)
    assert [SESSION] == [trace["session_id"] for trace in found["traces"]]
    validate("triage", console.result("triage"))

    status = console.result("status")
    assert "up" == status["state"]
    pids = [part["pid"] for part in status["parts"]]
    code, out, err = console.run("up")
    assert (2, "") == (code, out)
    assert "already runs" in err
    assert 1 == len(err.splitlines())

    down = console.result("down")
    assert {"term"} == {stopped["how"] for stopped in down["stopped"]}
    assert "down" == console.result("status")["state"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert 1 == len(console.result("trace", SESSION)["traces"])
    assert 0o700 == (tmp_path / "state").stat().st_mode & 0o777

    console.run("down", "--purge")
    assert not (tmp_path / "rows").exists()
    assert [] == list((tmp_path / "state").iterdir())


def test_up_says_when_requests_will_not_be_recorded(console: Console, tmp_path: Path) -> None:
    """A folder of rows that others may read is not used; the stack runs, and the first screen has the mend."""
    (tmp_path / "rows").mkdir(mode=0o755)
    code, out, err = console.run("up")
    answered = console.ask()
    console.run("down")

    assert (0, 200) == (code, answered)
    assert (
        f"warning: requests will be served but not recorded: {tmp_path / 'rows'} is open to others; chmod 700"
        in " ".join((out + err).split())
    )


def test_a_stack_whose_state_folder_is_deleted_can_still_be_ended(console: Console, tmp_path: Path) -> None:
    """`rm -rf .inferdeck` under a running stack costs its data; `down` finds and ends the processes all the same."""
    pids = [part["pid"] for part in console.result("status")["parts"]] if console.result("up") else []
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    deadline = time.monotonic() + 10
    while not (tmp_path / "state" / "run" / "stack.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)

    down = console.result("down")

    assert len(pids) <= len(down["stopped"])
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids if pid)


def ended(pid: int) -> bool:
    """Return whether a process has gone, or is a zombie that the machine's first process does not reap."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_killed_supervisor_is_told_and_down_ends_what_it_left(console: Console, tmp_path: Path) -> None:
    """All parts answer, and yet the stack is degraded: nobody would start a dead part again."""
    console.result("up")
    record = json.loads((tmp_path / "state" / "run" / "stack.json").read_text())
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)

    code, out, _ = console.run("status", "--json")
    status = json.loads(out)
    assert (1, "degraded", {"up"}) == (code, status["state"], {part["health"] for part in status["parts"]})
    assert "supervisor is gone" in status["note"]

    assert 5 + len(JAEGER) == len(console.result("down")["stopped"])
    assert all(ended(part["pid"]) for part in status["parts"])


def test_a_killed_part_is_told_and_up_starts_it_again(console: Console) -> None:
    """Status names the dead part with its signal and exit 1; `up` brings it back without touching the others."""
    console.result("up")
    before = parts(console.result("status"))
    os.kill(before["exporter"]["pid"], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while parts(console.result("status"))["exporter"]["exit_code"] is None and time.monotonic() < deadline:
        time.sleep(0.2)

    code, out, _ = console.run("status", "--json")
    dead = parts(json.loads(out))["exporter"]
    assert (1, "dead", "killed by signal 9", -9) == (code, dead["health"], dead["detail"], dead["exit_code"])
    assert dead["log_tail"]

    console.result("up")
    after = parts(console.result("status"))
    assert "up" == after["exporter"]["health"]
    assert before["exporter"]["pid"] != after["exporter"]["pid"]
    assert before["service"]["pid"] == after["service"]["pid"]


def test_without_prometheus_the_rest_runs_and_it_is_said(console: Console, tmp_path: Path) -> None:
    """Service, rows, look-up and triage need no Prometheus; what is missing is named with its mend."""
    console.variables |= {"PATH": str(tmp_path), "INFERDECK_TOOLS_DIR": str(tmp_path / "none")}

    up = console.result("up")

    assert {"prometheus", "alertmanager"} == set(up["missing"])
    assert all("tool_install" in reason for reason in up["missing"].values())
    assert 200 == console.ask()
    assert 1 == len(console.result("trace", SESSION)["traces"])
    assert "prometheus" in console.result("triage")["missing_sources"]
    assert "up" == console.result("status")["state"]


def test_a_taken_port_is_one_line_and_nothing_is_left_running(console: Console, tmp_path: Path) -> None:
    """Which port, which setting; no part was started."""
    with socket.create_server(("127.0.0.1", console.service_port)):
        code, out, err = console.run("up")

    assert (2, "") == (code, out)
    assert f"port {console.service_port} (service_port) is taken" in err
    assert "INFERDECK_STACK_SERVICE_PORT" in err
    assert 1 == len(err.splitlines())
    assert not (tmp_path / "state" / "logs").exists()


def test_a_supervisor_that_was_killed_leaves_a_stack_that_down_can_end(console: Console) -> None:
    """The records outlive their writer; a new up is refused until down."""
    console.result("up")
    state = json.loads((Path(console.variables["INFERDECK_STATE_DIR"]) / "run" / "stack.json").read_text())
    os.kill(state["supervisor"]["pid"], signal.SIGKILL)
    time.sleep(0.2)

    code, _, err = console.run("up")
    assert 2 == code
    assert "still run" in err

    stopped = {entry["name"] for entry in console.result("down")["stopped"]}
    assert {"service", "exporter", "triage"} <= stopped
    assert "down" == console.result("status")["state"]


def test_foreground_ends_on_ctrl_c(console: Console) -> None:
    """`up --foreground` shows what happens, and stops everything on SIGINT."""
    child = console.start("up", "--foreground")
    assert child.stderr is not None
    for line in child.stderr:
        if "ready; Ctrl-C ends it" in line:
            break
    pids = [part["pid"] for part in console.result("status")["parts"] if part["pid"]]
    assert len(pids) >= 3

    child.send_signal(signal.SIGINT)

    child.communicate(timeout=60)
    assert 0 == child.returncode
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_running(console: Console, number: int) -> None:
    """Ctrl-C or TERM in the middle: processes, folders and rows are gone."""
    need_prometheus()
    child = console.start("demo")
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("baseline"):
            break
    marks = [pid for pid in children_of(child.pid) if pid]
    assert len(marks) >= 5

    child.send_signal(number)
    time.sleep(0.3)
    # an impatient second one must not break the clean-up off
    child.send_signal(number)

    child.communicate(timeout=60)
    assert 130 == child.returncode
    assert not any(Path(f"/proc/{pid}").exists() for pid in marks)


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]
