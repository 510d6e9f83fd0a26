"""Held connections take all of the descriptors that a process may have; short ones give theirs back."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module

# A server that tells, once asked for it on stdin, what its probe of the process sees.
SERVER = """
import json, socketserver, sys, threading
from probes.process_usage import ProcessUsage

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            if line == b"\\r\\n":
                self.wfile.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\nconnection: close\\r\\n\\r\\n")
                return

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256
    def handle_error(self, request, address):
        pass

usage = ProcessUsage()
usage.reading()
server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
for _ in sys.stdin:
    print(json.dumps(usage.reading()), flush=True)
"""


class Service:
    """The server as a program sees a stack."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self.handle = SimpleNamespace(service_url=f"http://127.0.0.1:{port}", worker_pids=[process.pid])

    def reading(self) -> dict[str, Any]:
        """Return what the server's probe sees."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def until_refused(self, limit_seconds: float) -> dict[str, Any]:
        """Return the first reading at which no descriptor was left, or the last one in time."""
        until = time.monotonic() + limit_seconds
        while not (told := self.reading())["fd_refused"] and time.monotonic() < until:
            time.sleep(0.1)
        return told


@pytest.fixture
def service() -> Iterator[Service]:
    """A server in a process of its own: its limit is not ours."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert process.stdout is not None
    try:
        yield Service(process, int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()


def load() -> Any:
    """Load the program as a drill does."""
    return load_module(Path(__file__).with_name("file_descriptors_exhausted.py"))


def test_held_connections_leave_no_descriptor_and_are_sockets(service: Service) -> None:
    """The service's own probe says so; what is held is given back when the cause ends, and so is the limit."""
    before = service.reading()
    with load().cause(service.handle):
        told = service.until_refused(30.0)

    assert told["fd_refused"] >= 1
    assert told["fds"] == told["fd_limit"] < before["fd_limit"]
    assert "socket" == max(told["fd_kinds"], key=lambda kind: told["fd_kinds"][kind])
    assert before["fd_limit"] == resource.prlimit(service.handle.worker_pids[0], resource.RLIMIT_NOFILE)[0]


def test_the_twins_short_connections_never_take_all(service: Service) -> None:
    """Under the same limit."""
    before = service.reading()
    with load().twin_cause(service.handle):
        told = service.until_refused(3.0)

    assert told["fd_refused"] == 0
    assert told["fd_limit"] < before["fd_limit"]
