"""The program kills one worker and its twin stops one in an orderly way; no other process is touched."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SLEEP = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(1, flush=True)
time.sleep(60)
"""


class FakeStack:
    """A stack whose workers are sleeping processes."""

    def __init__(self, workers: list[subprocess.Popen[bytes]]) -> None:
        self.worker_pids = [worker.pid for worker in workers]


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start two processes that end with 7 when they are asked to, and end them."""
    started = [subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE) for _ in range(2)]
    for one in started:
        assert one.stdout is not None
        one.stdout.readline()
    yield started
    for one in started:
        one.kill()
        one.communicate()


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("worker_killed.py")
    spec = importlib.util.spec_from_file_location("worker_killed_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("hook", "code"), [("cause", -signal.SIGKILL), ("twin_cause", 7)])
def test_one_worker_ends_and_the_other_lives(hook: str, code: int, workers: list[subprocess.Popen[bytes]]) -> None:
    """Killed, it has no last word; recycled, it has."""
    program = load()

    with getattr(program, hook)(FakeStack(workers)):
        ended = workers[1].wait(timeout=10)

    assert code == ended
    assert workers[0].poll() is None


def test_it_asks_for_several_workers() -> None:
    """With one worker it would be the whole service."""
    assert load().WORKERS >= 2
