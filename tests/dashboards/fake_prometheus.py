"""A server that answers Prometheus' four questions with what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["matrix", "serving", "vector"]

Answer = Callable[[str, Mapping[str, str]], tuple[int, Any]]


def matrix(labels: Mapping[str, str], values: list[float], start: float = 1000.0, step: float = 15.0) -> dict[str, Any]:
    """Return one series of a range query."""
    points = [[start + number * step, str(value)] for number, value in enumerate(values)]
    return {"metric": dict(labels), "values": points}


def vector(labels: Mapping[str, str], value: float, at: float = 1000.0) -> dict[str, Any]:
    """Return one series of an instant query."""
    return {"metric": dict(labels), "value": [at, str(value)]}


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve and yield the address.

    Args:
        answer: From path below /api/v1 and parameters to HTTP status and `data`.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            parameters = {key: values[0] for key, values in parse_qs(url.query).items()}
            status, data = answer(url.path.removeprefix("/api/v1/"), parameters)
            document = {"status": "success", "data": data} if status == 200 else {"status": "error", "error": data}
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
