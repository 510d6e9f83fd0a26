"""The program's server aborts after words of CUDA, its twin's ends with 0; the supervisor reads both."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from inferdeck.drill.program import load_module, read_program
from service.triton.last_exit import end_of
from tests.failures._triton import RecordingStack

PATH = Path(__file__).with_name("illegal_memory_access.py")
# Ends with 0 when it is asked to, as tritonserver does.
SERVER = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); time.sleep(60)"


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    return load_module(PATH)


@contextmanager
def server() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that stands for Triton's, and end it."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert b"up" in process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Stack(RecordingStack):
    """A stack whose service is gone, which is no error of the program's; it has a log."""

    service_url = "http://127.0.0.1:9"

    def __init__(self, pid: int, state_dir: Path) -> None:
        super().__init__(pid)
        self.state_dir = state_dir

    def triton_pids(self, *, stubs: bool = False) -> list[int]:
        """Return the server; it has no stubs."""
        return [] if stubs else [self.pid]


@pytest.mark.parametrize(
    ("hook", "code", "kind"), [("cause", -signal.SIGABRT, "illegal_memory_access"), ("twin_cause", 0, "clean")]
)
def test_the_supervisor_reads_how_it_ended(program: Any, tmp_path: Path, hook: str, code: int, kind: str) -> None:
    """Real exit codes, replayed words; what stood in the log before belongs to another life."""
    log = tmp_path / "triton" / "tritonserver.log"
    log.parent.mkdir()
    log.write_text(program.WORDS)
    began = log.stat().st_size
    with server() as process, getattr(program, hook)(Stack(process.pid, tmp_path)):
        found = end_of(process.wait(30), log, began)

    assert (code, kind) == (found.code, found.kind)


def test_it_is_scored_as_simulated(program: Any) -> None:
    """The words are played; the stack has a Triton."""
    told = read_program(PATH)

    assert (True, "triton", program.SLUG) == (told.simulated, told.backend, told.slug)
