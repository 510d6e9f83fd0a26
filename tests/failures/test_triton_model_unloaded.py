"""The program takes the model out of Triton by its repository API; its twin puts it back at once."""

from __future__ import annotations

import threading
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.failures._triton import RecordingStack, load

MODEL = "/v2/repository/models/sentiment"


@contextmanager
def repository(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """Serve what stands for Triton's repository API; yields its base URL and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Note it."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append(f"POST {self.path} {body}")
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the base class calls it so
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("hook", "verbs"), [("cause", ["unload"]), ("twin_cause", ["unload", "load"])])
def test_the_cause_unloads_and_the_twin_loads_again_at_once(hook: str, verbs: list[str]) -> None:
    """Nothing else is done to the stack, and leaving does nothing."""
    with repository() as (url, asked):
        stack = RecordingStack(url=url)
        expected = [f"POST {MODEL}/{verb} {{}}" for verb in verbs]

        with getattr(load("triton_model_unloaded"), hook)(stack):
            assert expected == asked

        assert expected == asked
        assert [] == stack.done


def test_a_triton_that_refuses_is_an_error_of_the_drill() -> None:
    """Else a run would count in which nothing was caused."""
    with (
        repository(status=400) as (url, _),
        pytest.raises(urllib.error.HTTPError) as refused,
        load("triton_model_unloaded").cause(RecordingStack(url=url)),
    ):
        pytest.fail("nothing was caused")
    refused.value.close()
