"""The program's callers hang up before their answer; the twin's wait for it; the look-up takes as long for both."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("upstream_timeout.py")
    return load_module(path)


@pytest.fixture
def server() -> Iterator[tuple[str, list[bool]]]:
    """Answer each request after a while, and keep whether its caller was still there."""
    heard: list[bool] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            time.sleep(0.1)
            self.connection.setblocking(False)
            try:
                # A caller that hung up has sent the end of its stream; one that waits has sent nothing more.
                heard.append(self.connection.recv(1) != b"")
            except BlockingIOError:
                heard.append(True)
                self.connection.setblocking(True)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}", heard
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.mark.parametrize(("hook", "stays"), [("cause", False), ("twin_cause", True)])
def test_callers_leave_before_their_answer_and_the_twins_wait(
    hook: str, stays: bool, server: tuple[str, list[bool]]
) -> None:
    """The same requests, told apart by patience alone."""
    url, heard = server
    program = load()
    program.PERIOD_SECONDS, program.TIMEOUT_SECONDS = 0.01, 0.02
    with getattr(program, hook)(SimpleNamespace(service_url=url)):
        deadline = time.monotonic() + 20
        while len(heard) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert set(heard[:3]) == {stays}
    assert len(heard) >= 3


def test_only_one_releases_requests_take_long_and_always_do() -> None:
    """Armed or not: the service is not what changes."""
    program = load()
    program.TAKES_SECONDS = 0.05
    called: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        called.append(scope["type"])

    async def seconds(headers: list[tuple[bytes, bytes]]) -> float:
        started = time.monotonic()
        await program.wrap(app, lambda: False)({"type": "http", "headers": headers}, None, None)
        return time.monotonic() - started

    assert asyncio.run(seconds([(b"x-client-release", program.RELEASE.encode())])) >= 0.05
    assert asyncio.run(seconds([])) < 0.05
    assert called == ["http", "http"]


def test_a_service_that_is_gone_is_no_error() -> None:
    """The stack may have ended first."""
    with load().cause(SimpleNamespace(service_url="http://127.0.0.1:9")):
        time.sleep(0.05)
