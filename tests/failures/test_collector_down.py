"""The program kills the collector; its twin only makes it late, and never leaves it stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inferdeck.drill.program import load_module, read_program
from tests.failures.test_exporter_unreachable import becomes

PATH = Path(__file__).with_name("collector_down.py")


class FakeStack:
    """A stack whose collector is a sleeping process."""

    def __init__(self, pids: list[int]) -> None:
        self.collector_pids = pids
        self.done: list[str] = []

    def kill_collector(self) -> None:
        """Note it."""
        self.done.append("kill_collector")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that sleeps, and end it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield child
    child.kill()
    child.wait()


def test_it_asks_for_a_stack_with_a_collector() -> None:
    """Other programs get none: it costs memory."""
    assert read_program(PATH).collector
    assert not read_program(PATH.with_name("exporter_unreachable.py")).collector


def test_the_failure_kills_the_collector_and_nothing_else() -> None:
    """Entering kills; leaving undoes nothing."""
    stack = FakeStack([])

    with load_module(PATH).cause(stack):
        assert ["kill_collector"] == stack.done

    assert ["kill_collector"] == stack.done


def test_the_twin_makes_it_late_and_lets_it_go_on(sleeper: subprocess.Popen[bytes]) -> None:
    """Stopped, going on, and stopped again while the twin lasts; a twin that is broken off leaves it running."""
    program: Any = load_module(PATH)
    program.PAUSE_SECONDS, program.REST_SECONDS = 0.2, 0.2

    with program.twin_cause(FakeStack([sleeper.pid])):
        assert becomes(sleeper.pid, "T")
        assert becomes(sleeper.pid, "SR")
        assert becomes(sleeper.pid, "T")

    assert becomes(sleeper.pid, "SR")
    assert sleeper.poll() is None
