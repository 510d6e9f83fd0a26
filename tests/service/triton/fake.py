"""A Triton that does as it is told, on a loopback port: it speaks the protocol and can break it in every way."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from numpy.typing import NDArray

__all__ = ["FakeTriton", "fake_triton", "silent_socket"]


class FakeTriton:
    """What it shall do, and what it was asked.

    Attributes:
        how: One of fine, nan, shape, garbage, half, late, close, error.
        logits: One row of the answer.
        status, message: Of `error`.
    """

    def __init__(self) -> None:
        self.how = "fine"
        self.logits: NDArray[np.float32] = np.array([[0.0, 1.0, 3.0]], dtype=np.float32)
        self.status, self.message = 500, "in ensemble 'x', Stub process 'y' is not healthy."
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.port = 0


def _answer(rows: NDArray[np.float32]) -> tuple[bytes, int]:
    data = rows.astype("<f4").tobytes()
    output = {
        "name": "logits",
        "datatype": "FP32",
        "shape": list(rows.shape),
        "parameters": {"binary_data_size": len(data)},
    }
    head = json.dumps({"model_name": "sentiment", "model_version": "2", "outputs": [output]}).encode()
    return head + data, len(head)


def _handler(fake: FakeTriton) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer as told."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.paths.append(self.path)
            fake.headers.append(dict(self.headers.items()))
            fake.bodies.append(body)
            how = fake.how
            if how == "late":
                time.sleep(0.6)
            if how == "close":
                self.close_connection = True
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if how == "error":
                self._send(fake.status, json.dumps({"error": fake.message}).encode(), None)
                return
            rows = {"nan": fake.logits * np.nan, "shape": np.zeros((2, 5), dtype=np.float32)}.get(how, fake.logits)
            content, length = _answer(np.asarray(rows, dtype=np.float32))
            if how == "garbage":
                content, length = b"\x00" * 40, 17
            self._send(200, content, length, half=how == "half")

        def _send(self, status: int, content: bytes, length: int | None, *, half: bool = False) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            if length is not None:
                self.send_header("Inference-Header-Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if half else content)
            if half:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Say nothing."""

    return Handler


@contextmanager
def fake_triton() -> Iterator[FakeTriton]:
    """Run one on a free port."""
    fake = FakeTriton()

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Clients that leave are what is tested."""

    server = Quiet(("127.0.0.1", 0), _handler(fake))
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent_socket() -> Iterator[int]:
    """Hold a port that takes connections and says nothing, as a stopped process does; yields it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield listening.getsockname()[1]
