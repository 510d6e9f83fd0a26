"""Probes are carried out as a kubelet would, against the ports of the embedded stack."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from inferdeck.drill.probing import probe_of


class Page(BaseHTTPRequestHandler):
    """Ready at one path, warming at all others."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200 if self.path == "/healthz/ready" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Return a server's address."""
    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def nobody() -> str:
    """Return an address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_page_succeeds_by_its_status_and_a_port_by_listening(url: str, nobody: str) -> None:
    """The admin port by name or number, any other is the service's."""
    probe = probe_of(nobody, url)

    assert probe({"httpGet": {"path": "/healthz/ready", "port": "admin"}})
    assert probe({"httpGet": {"path": "/healthz/ready", "port": 8081}})
    assert probe({"tcpSocket": {"port": "admin"}})
    assert not probe({"httpGet": {"path": "/other", "port": "admin"}})
    assert not probe({"httpGet": {"path": "/healthz/ready", "port": "http"}})
    assert not probe({"tcpSocket": {"port": 8080}})
