"""What the tests of the programs about Triton share: a program as a module, and a stack that notes what is done."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from inferdeck.drill.program import read_program

HERE = Path(__file__).parent


def load(slug: str) -> Any:
    """Return a program as a module, once it is seen to ask for a stack with Triton and to have a twin.

    Args:
        slug: The program's file name without its suffix.
    """
    told = read_program(HERE / f"{slug}.py")
    assert ("triton", slug) == (told.backend, told.slug)
    assert {"cause", "twin_cause"} <= told.hooks
    spec = importlib.util.spec_from_file_location(f"{slug}_program", HERE / f"{slug}.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that stands for Triton's, and end it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def becomes_stopped(pid: int, *, stopped: bool) -> None:
    """Wait until a process is stopped, or is not: a signal takes its time."""
    until = time.monotonic() + 10
    while (psutil.Process(pid).status() == psutil.STATUS_STOPPED) != stopped:
        assert time.monotonic() < until
        time.sleep(0.01)


class RecordingStack:
    """Notes what a program does to the stack.

    Args:
        pid: The only process of its Triton.
        url: Where its Triton listens.
    """

    def __init__(self, pid: int = 0, url: str = "") -> None:
        self.done: list[str] = []
        self.pid = pid
        self.triton_url = url

    def kill_triton(self, number: int = signal.SIGKILL) -> None:
        """Note it."""
        self.done.append(f"kill_triton {number}")

    def restart_triton(self) -> None:
        """Note it."""
        self.done.append("restart_triton")

    def reach_triton_by(self, port: int) -> None:
        """Note it."""
        self.done.append(f"reach_triton_by {port}")

    def triton_pids(self, *, stubs: bool = False) -> list[int]:
        """Note it, and return the one there is."""
        self.done.append("stubs" if stubs else "server")
        return [self.pid]
