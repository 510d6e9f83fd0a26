"""The program sends what the contract refuses, of one release; its twin asks for paths that are not there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module
from service.contract import read_request
from service.errors import Refusal

Seen = list[tuple[str, str, str, bytes]]


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("contract_violations.py")
    return load_module(path)


@pytest.fixture
def server() -> Iterator[tuple[str, Seen]]:
    """Serve 404 to all on a free port, and keep what came."""
    seen: Seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            seen.append((self.command, self.path, self.headers.get("x-client-release", ""), body))
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        do_POST = do_GET  # noqa: N815  as above

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}", seen
    listening.shutdown()
    thread.join()
    listening.server_close()


def sent(hook: str, server: tuple[str, Seen]) -> Seen:
    """Return what the hook sends until three requests came."""
    url, seen = server
    program = load()
    program.PERIOD_SECONDS = 0.01
    with getattr(program, hook)(SimpleNamespace(service_url=url)):
        deadline = time.monotonic() + 10
        while len(seen) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(seen) >= 3
    return seen


def test_each_request_breaks_the_contract_in_its_product_id(server: tuple[str, Seen]) -> None:
    """The service's own contract refuses it for that field; in capitals the same request is a good one."""
    for method, path, release, body in sent("cause", server):
        assert ("POST", "/v1/sentiment", "4.3.0") == (method, path, release)
        with pytest.raises(Refusal) as refused:
            read_request(body)
        assert ("schema", "product_id") == (refused.value.reason, refused.value.field)
        good = json.loads(body)
        read_request(json.dumps(good | {"product_id": good["product_id"].upper()}).encode())


def test_the_twin_asks_for_nothing_that_has_a_contract(server: tuple[str, Seen]) -> None:
    """Wrong paths only."""
    assert {("GET", False)} == {(method, path == "/v1/sentiment") for method, path, _, _ in sent("twin_cause", server)}


def test_it_ends_when_it_is_left(server: tuple[str, Seen]) -> None:
    """No thread goes on sending after the drill."""
    seen = sent("cause", server)
    count = len(seen)
    time.sleep(0.1)

    assert count == len(seen)


def test_a_service_that_is_gone_is_no_error() -> None:
    """The stack may have ended first."""
    with load().cause(SimpleNamespace(service_url="http://127.0.0.1:9")):
        time.sleep(0.05)
