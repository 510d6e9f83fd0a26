"""`python -m service.triton`: a Triton with its supervisor in the foreground, until TERM."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST

from service.artifacts import ArtifactsError
from service.triton.home import Home
from service.triton.repository import MODEL, lay_out
from service.triton.server import Address, Server, sweep_shared_memory
from service.triton.supervise import Health, Supervisor
from service.triton.supervisor_metrics import render
from service.triton.transport import TritonHttp

_LOOK_SECONDS = 1.0


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m service.triton", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="made by `inferdeck triton install`")
    parser.add_argument("--models", type=Path, required=True, help="written by `inferdeck train`")
    parser.add_argument("--work", type=Path, required=True, help="gets the repository, Triton's log and last_exit.json")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--http-port", type=int, default=18000)
    parser.add_argument("--metrics-port", type=int, default=18002)
    parser.add_argument("--admin-port", type=int, default=18003, help="the supervisor's /healthz/ready and /metrics")
    parser.add_argument("--hang-seconds", type=float, default=60.0, help="without an answer for so long it is killed")
    parser.add_argument("--start-seconds", type=float, default=120.0, help="not there after so long it is killed")
    parser.add_argument("--traces", help="OTLP/HTTP address for Triton's own spans, sent as JSON")
    return parser.parse_args(given)


def _admin(host: str, port: int, health: Health) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5.0

        def do_GET(self) -> None:
            """Answer health and metrics."""
            if self.path == "/metrics":
                self._answer(200, render(health), CONTENT_TYPE_LATEST)
            elif self.path == "/healthz/ready":
                state = health.state
                self._answer(200 if state == "ok" else 503, f"{state}\n".encode(), "text/plain")
            else:
                self._answer(404, b"there are /healthz/ready and /metrics\n", "text/plain")

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Say nothing: a probe every second is no event."""

    server = ThreadingHTTPServer((host, port), Handler)
    threading.Thread(target=server.serve_forever, name="admin", daemon=True).start()
    return server


def main(given: Sequence[str] | None = None) -> int:
    """Run until TERM or INT.

    Returns:
        0 when it was stopped, 2 after one line when it cannot start.
    """
    told = _arguments(given)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: ending.set())
    home = Home(told.home)
    try:
        if (why := home.lacks()) is not None:
            raise ArtifactsError(why)
        told.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        repository = lay_out(told.models, told.work / "repository")
        sweep_shared_memory()
        address = Address(told.host, told.http_port, told.metrics_port)
        client = TritonHttp(told.host, told.http_port, MODEL, 1)
        log = told.work / "tritonserver.log"
        supervisor = Supervisor(
            lambda: Server(home, repository, address, log, told.traces),
            client,
            told.host,
            told.http_port,
            hang_seconds=told.hang_seconds,
            start_seconds=told.start_seconds,
            exit_file=told.work / "last_exit.json",
        )
        admin = _admin(told.host, told.admin_port, supervisor.health)
    except (ArtifactsError, OSError) as error:
        sys.stderr.write(f"triton: {error}\n")
        return 2
    try:
        while not ending.is_set():
            supervisor.step()
            ending.wait(_LOOK_SECONDS if supervisor.health.state == "ok" else _LOOK_SECONDS / 4)
    finally:
        admin.shutdown()
        supervisor.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
