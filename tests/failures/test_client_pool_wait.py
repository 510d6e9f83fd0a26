"""The program leaves one connection to 32 threads; its twin has one for each, and a Triton that is busy itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import Any

import numpy as np
import psutil
import pytest

from inferdeck.drill.program import load_module, read_program
from service.settings import load_settings
from service.triton.transport import Call, TritonHttp
from tests.failures._triton import RecordingStack, sleeper

HERE = Path(__file__).parent
IDS = np.ones((1, 8), np.int64)


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    return load_module(HERE / "client_pool_wait.py")


class Stack(RecordingStack):
    """Notes what is deployed; its service is gone, which is no error of the program's."""

    service_url = "http://127.0.0.1:9"

    def deploy_service(self, environment: dict[str, str]) -> None:
        """Note it."""
        self.done.append(environment["INFERDECK_SERVICE_TRITON_CONNECTIONS"])


@contextmanager
def server(seconds: float) -> Iterator[int]:
    """Answer each call with an error after a time; yields the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Take the body, and answer."""
            self.rfile.read(int(self.headers["content-length"]))
            time.sleep(seconds)
            self.send_response(500)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Say nothing."""

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=found.serve_forever, daemon=True).start()
    try:
        yield found.server_address[1]
    finally:
        found.shutdown()
        found.server_close()


def waits(connections: int, calls: int) -> list[int]:
    """Return for how long each of some calls at one time waited for a connection."""
    with server(0.05) as port:
        client, together, told, lock = (
            TritonHttp("127.0.0.1", port, "sentiment", connections),
            Barrier(calls),
            [],
            Lock(),
        )

        def one() -> None:
            call = Call()
            together.wait(10)
            with pytest.raises(RuntimeError):
                client.infer(IDS, IDS, version="2", seconds=30.0, call=call)
            with lock:
                told.append(call.pool_wait_ns)

        threads = [Thread(target=one) for _ in range(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        client.close()
    return sorted(told)


def test_the_settings_leave_connections_to_threads(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads of the usual service with Triton; one connection for them, or one for each."""
    assert ("triton", "client_pool_wait") == (read_program(HERE / "client_pool_wait.py").backend, program.SLUG)
    monkeypatch.setenv("INFERDECK_SERVICE_BACKEND", "triton")
    usual = load_settings()
    for name, value in program.connections(1).items():
        monkeypatch.setenv(name, value)
    caused = load_settings()
    assert (usual.model_threads, usual.triton_connections) == (program.THREADS, program.THREADS)
    assert (caused.model_threads, caused.triton_connections) == (program.THREADS, 1)


def test_both_deploy_and_neither_minds_a_service_that_is_gone(program: Any) -> None:
    """One connection, or as many as threads; the twin lets go what it stopped."""
    with sleeper() as process:
        for hook, expected in ((program.cause, "1"), (program.twin_cause, "32")):
            stack = Stack(process.pid)
            with hook(stack):
                time.sleep(0.2)
            assert expected == stack.done[0]
            assert ("stubs" in stack.done) == (expected != "1")
        assert psutil.STATUS_STOPPED != psutil.Process(process.pid).status()


def test_a_call_tells_what_it_waited_for_a_connection(program: Any) -> None:
    """The last of five on one connection waits for four calls of 50 ms; with one for each nobody waits so long."""
    assert waits(1, 5)[-1] >= 4 * 50_000_000
    assert waits(5, 5)[-1] < 50_000_000
