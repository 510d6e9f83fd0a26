"""The programs about Triton do one thing to it, and put right at the end what must not outlive them."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from inferdeck.drill.program import read_program

HERE = Path(__file__).parent
SLUGS = ("triton_down", "triton_hung", "triton_stub_dead", "triton_model_unloaded", "triton_slow_network")


def load(slug: str) -> Any:
    """Return a program as a module."""
    spec = importlib.util.spec_from_file_location(f"{slug}_program", HERE / f"{slug}.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that stands for Triton's."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def wait_for(pid: int, *, stopped: bool) -> None:
    """Wait until a process is stopped, or is not: a signal takes its time."""
    until = time.monotonic() + 10
    while (psutil.Process(pid).status() == psutil.STATUS_STOPPED) != stopped:
        assert time.monotonic() < until
        time.sleep(0.01)


class RecordingStack:
    """Notes what a program does to the stack."""

    def __init__(self, pid: int = 0) -> None:
        self.done: list[str] = []
        self.pid = pid

    def kill_triton(self, number: int = signal.SIGKILL) -> None:
        """Note it."""
        self.done.append(f"kill_triton {number}")

    def restart_triton(self) -> None:
        """Note it."""
        self.done.append("restart_triton")

    def triton_pids(self, *, stubs: bool = False) -> list[int]:
        """Note it, and return the one there is."""
        self.done.append("stubs" if stubs else "server")
        return [self.pid]


@pytest.mark.parametrize("slug", SLUGS)
def test_each_asks_for_a_stack_with_triton_and_has_a_twin(slug: str) -> None:
    """Else there is nothing to break."""
    program = read_program(HERE / f"{slug}.py")

    assert ("triton", slug) == (program.backend, program.slug)
    assert {"cause", "twin_cause"} <= program.hooks


@pytest.mark.parametrize(("hook", "expected"), [("cause", ["kill_triton 9"]), ("twin_cause", ["restart_triton"])])
def test_down_kills_all_of_it_and_its_twin_restarts_it(hook: str, expected: list[str]) -> None:
    """Entering causes; leaving undoes nothing."""
    stack = RecordingStack()

    with getattr(load("triton_down"), hook)(stack):
        assert expected == stack.done

    assert expected == stack.done


def test_hung_stops_the_server_and_lets_it_go_on_afterwards(child: subprocess.Popen[bytes]) -> None:
    """A stopped process must not outlive the drill as one."""
    with load("triton_hung").cause(RecordingStack(child.pid)):
        wait_for(child.pid, stopped=True)

    wait_for(child.pid, stopped=False)


def test_the_twin_of_hung_is_over_before_it_is_looked_at(child: subprocess.Popen[bytes]) -> None:
    """A second of silence."""
    with load("triton_hung").twin_cause(RecordingStack(child.pid)):
        wait_for(child.pid, stopped=False)


def test_a_dead_stub_is_killed_and_the_killer_ends_with_the_drill(child: subprocess.Popen[bytes]) -> None:
    """Only stubs, and nobody after the end."""
    stack = RecordingStack(child.pid)

    with load("triton_stub_dead").cause(stack):
        assert -9 == child.wait(10)

    assert ["stubs"] == stack.done


@pytest.mark.parametrize(("delay", "least"), [(0.2, 0.2), (0.0, 0.0)])
def test_the_relay_holds_answers_back_and_passes_all_bytes_on(delay: float, least: float) -> None:
    """What comes through is what was sent; who reaches Triton by it is told the relay's port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def echo() -> None:
            peer, _ = listening.accept()
            with peer:
                while data := peer.recv(65536):
                    peer.sendall(data[::-1])

        thread = threading.Thread(target=echo, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with (
            load("triton_slow_network").relay(url, delay) as port,
            socket.create_connection(("127.0.0.1", port), timeout=10) as client,
        ):
            began = time.monotonic()
            client.sendall(b"question")
            assert b"noitseuq" == client.recv(100)
            assert time.monotonic() - began >= least
            client.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        # those of the relay end when both sides have
        for one in threading.enumerate():
            if one.name.endswith(("(_carry)", "(_pass_on)")):
                one.join(10)
