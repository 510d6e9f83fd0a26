"""A Grafana of memory alone: it keeps what it is given under its paths, and can refuse.

It shows which requests we send and that what was sent is read back; it proves nothing about Grafana itself.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

# Path of a collection -> key by which its entries are known.
COLLECTIONS = {
    "/api/v1/provisioning/contact-points": "uid",
    "/api/v1/provisioning/mute-timings": "name",
    "/api/v1/provisioning/templates": "name",
    "/api/folders": "uid",
}


@dataclass
class FakeGrafana:
    """What it was asked, what it holds, and how it refuses."""

    url: str = ""
    token: str = "t0ken"
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    kept: dict[str, dict[str, Any]] = field(default_factory=lambda: {path: {} for path in COLLECTIONS})
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    boards: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    tree: dict[str, Any] = field(default_factory=lambda: {"receiver": "theirs"})
    # Status and body for every request from now on; None answers.
    refusal: tuple[int, Any] | None = None
    seconds: float = 0.0

    def requests(self) -> list[str]:
        """Return method and path of each request, in order."""
        return [f"{method} {path}" for method, path, _, _ in self.asked]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:  # noqa: PLR0911  # one per path
        """Return status and body."""
        if self.refusal:
            return self.refusal
        if path == "/api/health":
            return 200, {"version": "12.4.2", "database": "ok"}
        if found := re.fullmatch(r"/api/datasources/uid/([^/]+)(/health)?", path):
            if found[1] not in self.sources:
                return 404, {"message": "Data source not found"}
            return 200, {"status": "OK", "message": "Successfully queried"} if found[2] else self.sources[found[1]]
        if (method, path) == ("POST", "/api/datasources"):
            self.sources[body["uid"]] = body
            return 200, {"datasource": body}
        if (method, path) == ("POST", "/api/dashboards/db"):
            self.boards[body["dashboard"]["uid"]] = body
            return 200, {"status": "success"}
        if found := re.fullmatch(r"/api/dashboards/uid/(.+)", path):
            board = self.boards.get(found[1])
            return (200, {"dashboard": board["dashboard"]}) if board else (404, {"message": "Dashboard not found"})
        if path.endswith("/policies"):
            if method == "PUT":
                self.tree = body
            return 200, self.tree
        return self._alerting(method, path, body)

    def _alerting(self, method: str, path: str, body: Any) -> tuple[int, Any]:  # noqa: PLR0911  # one per path
        if path == "/api/v1/provisioning/alert-rules":
            return 200, list(self.rules.values())
        if found := re.fullmatch(r"/api/v1/provisioning/alert-rules/(.+)", path):
            self.rules.pop(found[1], None)
            return 204, None
        if found := re.fullmatch(r"/api/v1/provisioning/folder/(.+)/rule-groups/(.+)", path):
            # As Grafana writes durations back.
            self.rules |= {rule["uid"]: rule | {"for": rule["for"].replace("1m", "1m0s")} for rule in body["rules"]}
            return 200, body
        for base, key in COLLECTIONS.items():
            if path == base:
                if method == "GET":
                    return 200, list(self.kept[base].values())
                self.kept[base][body[key]] = body
                return 202, body
            if path.startswith(f"{base}/"):
                name = path.removeprefix(f"{base}/")
                if method == "GET":
                    return (200, self.kept[base][name]) if name in self.kept[base] else (404, {"message": "not found"})
                if base != "/api/v1/provisioning/templates" and name not in self.kept[base]:
                    return 404, {"message": "not found"}
                self.kept[base][name] = {key: name, **body}
                return 202, body
        return 404, {"message": f"no such path {path}"}


@pytest.fixture
def fake() -> Iterator[FakeGrafana]:
    """The server, on a port of its own."""
    known = FakeGrafana()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = urlsplit(self.path).path
            said = json.loads(body) if body else None
            known.asked.append((self.command, path, dict(self.headers), said))
            time.sleep(known.seconds)
            status, answer = known.answer(self.command, path, said)
            if self.headers.get("Authorization") != f"Bearer {known.token}":
                status, answer = 401, {"message": "Unauthorized"}
            text = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815  # the standard library's names

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    known.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
