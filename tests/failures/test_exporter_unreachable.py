"""The program kills the exporter; its twin only makes one scrape slow."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class FakeStack:
    """A stack whose exporter is a sleeping process."""

    def __init__(self, pids: list[int]) -> None:
        self.exporter_pids = pids
        self.done: list[str] = []

    def kill_exporter(self) -> None:
        """Note it."""
        self.done.append("kill_exporter")


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("exporter_unreachable.py")
    spec = importlib.util.spec_from_file_location("exporter_unreachable_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that sleeps, and end it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield child
    child.kill()
    child.wait()


def kernel_state(pid: int) -> str:
    """Return the state letter of a process, as /proc has it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def becomes(pid: int, states: str) -> bool:
    """Return whether the process comes into one of *states* soon."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if kernel_state(pid) in states:
            return True
        time.sleep(0.02)
    return False


def test_the_failure_kills_the_exporter_and_nothing_else() -> None:
    """Entering kills; leaving undoes nothing."""
    stack = FakeStack([])

    with load().cause(stack):
        assert ["kill_exporter"] == stack.done

    assert ["kill_exporter"] == stack.done


def test_the_twin_stops_it_for_a_moment_only(sleeper: subprocess.Popen[bytes]) -> None:
    """It is stopped, goes on by itself while the twin lasts, and is never ended."""
    program = load()
    program.PAUSE_SECONDS = 0.2

    with program.twin_cause(FakeStack([sleeper.pid])):
        assert becomes(sleeper.pid, "T")
        assert becomes(sleeper.pid, "SR")

    assert sleeper.poll() is None


def test_leaving_early_lets_it_go_on(sleeper: subprocess.Popen[bytes]) -> None:
    """A drill that is broken off does not leave a stopped process behind."""
    with load().twin_cause(FakeStack([sleeper.pid])):
        assert becomes(sleeper.pid, "T")

    assert becomes(sleeper.pid, "SR")


def test_a_process_that_has_gone_is_no_error() -> None:
    """The stack may have ended first."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    pid = child.pid
    program = load()
    child.wait()

    program._resume([pid])
