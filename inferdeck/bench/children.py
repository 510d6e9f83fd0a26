"""The bench's own processes: started with a clean environment, asked for their port, stopped by pid."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from inferdeck.errors import CannotRun

__all__ = ["Child", "log_tail", "spawn", "wait_for_port"]

START_SECONDS = 60.0
STOP_SECONDS = 10.0


class Child:
    """One process of the bench and its log file."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self.port = 0

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid

    @property
    def url(self) -> str:
        """Return the base URL on the loopback address."""
        return f"http://127.0.0.1:{self.port}"

    def alive_or_raise(self) -> None:
        """Do nothing while the process lives.

        Raises:
            CannotRun: With the last line of its log, when it has ended.
        """
        code = self.process.poll()
        if code is not None:
            raise CannotRun(f"{self.name} ended with {code}: {log_tail(self.log)}", f"see {self.log}")

    def stop(self) -> None:
        """Ask it to end, insist after ten seconds, and reap it."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def log_tail(log: Path) -> str:
    """Return the last line of a log file, or a word for none."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return lines[-1][:300] if lines else "no output"


@contextmanager
def spawn(name: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Child]:
    """Run `python arguments...` while the body runs.

    Args:
        name: For messages and the log's file name.
        arguments: What follows the interpreter.
        folder: Working and log folder.
        environment: Added to a copy of ours that has none of our own settings in it.

    Yields:
        The child; its port is not known yet.
    """
    # what the caller's shell sets for the product must not leak into what is measured
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("INFERDECK_", "OTEL_"))}
    log = folder / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env={**ours, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
        )
    child = Child(name, process, log)
    try:
        yield child
    finally:
        child.stop()


def wait_for_port(child: Child, seconds: float = START_SECONDS) -> int:
    """Read the line `{"port": N}` from the child's stdout and keep the port.

    Raises:
        CannotRun: If it ends, or says nothing in time.
    """
    stdout = child.process.stdout
    assert stdout is not None  # noqa: S101  # spawn always makes a pipe
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready, _, _ = select.select([stdout], [], [], 0.2)
        if not ready:
            child.alive_or_raise()
            continue
        line = stdout.readline()
        if not line:
            child.process.wait(STOP_SECONDS)
            child.alive_or_raise()
        child.port = int(json.loads(line)["port"])
        return child.port
    raise CannotRun(f"{child.name} did not start within {seconds:.0f} s: {log_tail(child.log)}", f"see {child.log}")
