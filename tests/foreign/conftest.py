"""Apps of somebody else as real server processes, watched by a real exporter, with a collector for both their spans."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from exporters.exporter import Exporter
from exporters.rows import RowTable, load_rows
from exporters.settings import ExporterSettings

HERE = Path(__file__).resolve().parent


@dataclass
class Spans:
    """A collector: what came over OTLP/HTTP, from whomever."""

    address: str = ""
    came: list[tuple[str, Span]] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        """Keep the spans of one request beside the SDK that made them."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.came += [(names["telemetry.sdk.name"], span) for scope in resource.scope_spans for span in scope.spans]

    def of(self, sdk: str) -> list[Span]:
        """Return the spans that an SDK made: "inferdeck" or "opentelemetry"."""
        return [span for name, span in self.came if name == sdk]


@dataclass
class Watched:
    """A folder of rows, its exporter and its collector."""

    ring_dir: Path
    exporter: Exporter
    spans: Spans
    log: Path

    @contextlib.contextmanager
    def serve(self, *command: str, **environment: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
        """Run a server on a socket that is bound already, ``{fd}`` in the command; stop it by its pid."""
        with socket.socket() as bound, self.log.open("ab") as log:
            bound.bind(("127.0.0.1", 0))
            bound.listen(128)
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            process = subprocess.Popen(
                [sys.executable, "-m", *(part.replace("{fd}", str(bound.fileno())) for part in command)],
                cwd=HERE,
                pass_fds=[bound.fileno()],
                env={**os.environ, **environment, "SINK": self.spans.address, "INFERDECK_RING_DIR": str(self.ring_dir)},
                stderr=log,
                stdout=log,
            )
            bound.close()
            try:
                with httpx.Client(base_url=url, timeout=30) as client:
                    yield client, process
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait(5)

    def rows(self, count: int) -> RowTable:
        """Return the folder's rows once there are *count*: a row comes after its answer's last byte."""
        self.until(lambda: len(load_rows(self.ring_dir)) >= count)
        return load_rows(self.ring_dir)

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that bear these labels, as a scrape shows them."""
        return sum(
            sample.value
            for family in self.exporter.collect()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def until(self, what: Callable[[], Any]) -> None:
        """Wait until it is true."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if what():
                return
            time.sleep(0.05)
        pytest.fail(f"waited 30 s in vain; the server's log:\n{self.log.read_text()}")


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Run a collector of spans on a port of its own."""
    spans = Spans()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            spans.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    spans.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield spans
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def watched(tmp_path: Path, spans: Spans) -> Iterator[Watched]:
    """Watch a folder from before the first row, as a stack does."""
    settings = ExporterSettings(
        ring_dir=tmp_path / "rings",
        state_dir=tmp_path / "state",
        tick_seconds=0.1,
        otlp_endpoint=spans.address,
        keep_share=1.0,
    )
    exporter = Exporter(settings)
    exporter.start()
    yield Watched(exporter.ring_dir, exporter, spans, tmp_path / "server.log")
    exporter.stop()
