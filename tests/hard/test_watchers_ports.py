from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from exporters.protocol import MOST_CONNECTIONS
from tests.hard.conftest import ROOT, free_port

WATCHERS = {"exporters": ("EXPORTER", "/metrics"), "runbooks": ("TRIAGE", "/healthz")}


@dataclass
class Watcher:
    """An exporter or a triage process."""

    port: int
    path: str
    process: subprocess.Popen[bytes]

    def status(self) -> int:
        """Return the status of what a scraper asks for; 0 when the connection is refused or broken."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{self.port}{self.path}", timeout=10).status_code
        return 0

    def resident_bytes(self) -> int:
        """Return the memory that the process holds."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE")

    def until_served(self, seconds: float) -> bool:
        """Return whether the port answers within the time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.status() == 200:
                return True
            time.sleep(0.1)
        return False


@pytest.fixture(params=WATCHERS)
def watcher(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watcher]:
    """Run each of the processes that people and programs ask over HTTP; stopped by its pid."""
    name, path = WATCHERS[request.param]
    port = free_port()
    told = {
        f"INFERDECK_{name}_PORT": str(port),
        "INFERDECK_RING_DIR": str(tmp_path / "rings"),
        "INFERDECK_STATE_DIR": str(tmp_path / "state"),
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", request.param], cwd=ROOT, env={**os.environ, **told}, stderr=log
        )
    watcher = Watcher(port, path, process)
    try:
        assert watcher.until_served(30)
        yield watcher
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


HALVES = {
    "head": b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ",
    "body": b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_half_open_connections_do_not_blind_the_watch(watcher: Watcher, half: bytes) -> None:
    """More than may be open at all, of which none ever ends its head or body: scrapes go on seconds later."""
    with contextlib.ExitStack() as wires:
        for _ in range(MOST_CONNECTIONS + 40):
            wire = wires.enter_context(socket.create_connection(("127.0.0.1", watcher.port), timeout=10))
            wire.sendall(half)

        assert watcher.until_served(20)


def test_requests_without_end_on_a_connection_cost_little_memory(watcher: Watcher) -> None:
    """A client that asks on and on and reads nothing is let go."""
    before = watcher.resident_bytes()
    with contextlib.ExitStack() as wires:
        for _ in range(10):
            wire = wires.enter_context(socket.create_connection(("127.0.0.1", watcher.port), timeout=10))
            wire.setblocking(False)
            with contextlib.suppress(OSError):
                for _ in range(40):
                    wire.send(b"GET /x HTTP/1.1\r\n\r\n" * 10_000)
        assert watcher.until_served(20)
        grown = watcher.resident_bytes() - before

    # Without the bound 300 MB were measured.
    assert grown < 25_000_000
