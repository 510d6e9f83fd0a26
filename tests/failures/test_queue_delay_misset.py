"""The program deploys a long queue delay to a running Triton, and the old one afterwards; its twin fills batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from inferdeck.drill.program import load_module, read_program

PROGRAM = Path(__file__).parent / "queue_delay_misset.py"
SHIPPED = (files("service.model_repository") / "sentiment" / "config.pbtxt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module, once it is seen to ask for a Triton and to have a twin."""
    told = read_program(PROGRAM)
    assert ("triton", "queue_delay_misset") == (told.backend, told.slug)
    assert {"cause", "twin_cause"} <= told.hooks
    return load_module(PROGRAM)


class Stack:
    """A stack whose service and Triton are one server that notes what it is told.

    Args:
        folder: Its state folder, with the shipped configuration where Triton serves it from.
        url: Address of the server.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.state_dir, self.service_url, self.triton_url = folder, url, url
        self.config = folder / "triton" / "repository" / "sentiment" / "config.pbtxt"
        self.config.parent.mkdir(parents=True)
        self.config.write_text(SHIPPED, encoding="utf-8")

    def delay(self) -> int:
        """Return the queue delay that a load finds, in microseconds."""
        found = re.search(r"max_queue_delay_microseconds: (\d+)", self.config.read_text(encoding="utf-8"))
        assert found is not None
        return int(found[1])


@contextmanager
def running(folder: Path, status: int = 200) -> Iterator[tuple[Stack, list[int], Event]]:
    """Serve a stack; yields it, the delays found at each load, and whether a client asked."""
    loads: list[int] = []
    asked = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Note it, and answer."""
            self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v2/repository/models/sentiment/load":
                loads.append(stack.delay())
            else:
                assert "/v1/sentiment" == self.path
                asked.set()
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stack = Stack(folder, f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield stack, loads, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.mark.parametrize(("hook", "clients"), [("cause", False), ("twin_cause", True)])
def test_the_long_delay_is_loaded_and_taken_back(program: Any, tmp_path: Path, hook: str, *, clients: bool) -> None:
    """Both load it; beside the twin's there are clients."""
    with running(tmp_path) as (stack, loads, asked):
        with getattr(program, hook)(stack):
            assert [100_000] == loads
            assert asked.wait(20 if clients else 0) is clients
        assert [100_000, 10_000] == loads
        assert SHIPPED == stack.config.read_text(encoding="utf-8")


def test_a_load_that_is_refused_is_no_cause(program: Any, tmp_path: Path) -> None:
    """A drill without its cause would be scored as missed."""
    with (
        running(tmp_path, 400) as (stack, _loads, _asked),
        pytest.raises(RuntimeError, match="400"),
        program.cause(stack),
    ):
        pass


def test_a_configuration_without_a_delay_cannot_get_another(program: Any) -> None:
    """Else the drill would run on an unchanged Triton."""
    with pytest.raises(ValueError, match="0 queue delays"):
        program.with_delay("dynamic_batching { }", 1)
