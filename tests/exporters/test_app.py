from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from exporters.archive.segment import Segment, list_segments
from exporters.names import METRICS
from exporters.rows import load_rows

ROOT = Path(__file__).resolve().parents[2]

# A worker as a service has it, without sockets: the real middleware, driven request by request from stdin.
WORKER = """
import asyncio, hashlib, sys
from probes import Identity, Recorder, RecorderSettings, FlightRecorder, current, stage

async def app(scope, receive, send):
    await receive()
    with stage("sentiment.tokenizer", tokens=12), stage("model.forward"):
        current().set(input_length=40, confidence=0.9, label="positive")
        hashlib.sha256(bytes(100_000))  # as a model, it takes longer than the recorder
    if scope["path"] == "/hang":
        with stage("model.forward"):
            await asyncio.sleep(3600)
    await send({"type": "http.response.start", "status": 500 if scope["path"] == "/fail" else 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})

async def main():
    settings = RecorderSettings(status_s=0.05, sensors=False)
    recorder = Recorder.open(sys.argv[1], "sentiment", Identity(build="b1"), settings)
    flight = FlightRecorder(app, recorder)
    loop = asyncio.get_running_loop()
    async def one(path):
        headers = [(b"x-session-id", b"session-0123456789ab")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}
        async def send(message):
            pass
        await flight(scope, receive, send)
    tasks = []
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        path, count = line.split()
        if path == "/hang":
            tasks.append(asyncio.create_task(one(path)))
            await asyncio.sleep(0.01)
        else:
            for _ in range(int(count)):
                await one(path)
        print("done", flush=True)
    recorder.close()

asyncio.run(main())
"""


class Worker:
    """A process that records requests when told to."""

    def __init__(self, ring_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(ring_dir)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    def serve(self, path: str = "/ok", count: int = 1) -> None:
        """Let it serve *count* requests."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{path} {count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self, how: int) -> None:
        """Send a signal and wait for the end; 0 ends it cleanly."""
        assert self.process.stdin is not None
        if how:
            os.kill(self.process.pid, how)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()


class ExporterProcess:
    """`python -m exporters` on a free port."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.port = free_port()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "exporters"], cwd=ROOT, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **self.environment, "INFERDECK_EXPORTER_PORT": str(self.port)},
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"http://127.0.0.1:{self.port}/healthz").status_code == 200:
                    return process
            time.sleep(0.05)
        raise AssertionError(f"the exporter did not start: {process.communicate(timeout=5)}")

    def stop(self, how: int) -> int:
        """Send a signal; returns the exit status."""
        if self.process.poll() is None:
            os.kill(self.process.pid, how)
        self.process.communicate(timeout=15)
        return self.process.returncode

    def restart(self, how: int) -> None:
        """Stop it by a signal and start it again."""
        self.stop(how)
        self.process = self._start()

    def metrics(self) -> dict[str, float]:
        """Scrape: sample with labels -> value."""
        found = {}
        for line in httpx.get(f"http://127.0.0.1:{self.port}/metrics").text.splitlines():
            if not line.startswith("#"):
                sample, _, value = line.rpartition(" ")
                found[sample] = float(value)
        return found

    def get(self, path: str) -> Any:
        """Ask the API."""
        return httpx.get(f"http://127.0.0.1:{self.port}{path}").json()


def free_port() -> int:
    """A port that nobody has at the moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(what: Callable[[], bool]) -> bool:
    """Whether it comes true within ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Folders of its own for an exporter."""
    return {
        "INFERDECK_RING_DIR": str(tmp_path / "rings"),
        "INFERDECK_STATE_DIR": str(tmp_path / "state"),
        "INFERDECK_EXPORTER_TICK_SECONDS": "0.1",
        "INFERDECK_EXPORTER_STATE_SECONDS": "0.2",
    }


@pytest.fixture
def processes() -> Iterator[list[Any]]:
    """What a test starts; killed by pid at its end."""
    started: list[Any] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            os.kill(one.process.pid, signal.SIGKILL)
        one.process.communicate(timeout=10) if isinstance(one, ExporterProcess) else one.end(0)


OK = 'model_requests_total{outcome="ok",route="(unmatched)"}'


def test_totals_stay_true_over_workers_kills_and_restarts(
    environment: dict[str, str], processes: list[Any], tmp_path: Path
) -> None:
    """No row is lost or counted twice, and no counter falls, when workers and the exporter stop or are killed."""
    exporter = ExporterProcess(environment)
    first, second = Worker(tmp_path / "rings"), Worker(tmp_path / "rings")
    processes += [exporter, first, second]
    seen: list[float] = []

    def total() -> float:
        seen.append(exporter.metrics().get(OK, 0.0))
        return seen[-1]

    first.serve(count=30)
    second.serve(count=12)
    assert total() == 42
    exporter.restart(signal.SIGTERM)
    assert total() == 42
    first.serve(count=5)
    assert total() == 47
    exporter.restart(signal.SIGKILL)
    assert total() == 47
    exporter.stop(signal.SIGKILL)
    first.serve(count=3)
    second.serve("/hang")
    second.end(signal.SIGKILL)
    third = Worker(tmp_path / "rings")
    processes.append(third)
    third.serve(count=100)
    third.serve("/fail", count=2)
    exporter.process = exporter._start()
    assert total() == 150
    metrics = exporter.metrics()
    assert metrics['model_requests_total{outcome="error",route="(unmatched)"}'] == 2
    assert metrics['model_unfinished_requests_total{stage="model.forward"}'] == 1
    assert metrics['telemetry_rings{state="last_flight"}'] == 1
    assert metrics["telemetry_rows_read_total"] == 152
    assert metrics['model_stage_seconds_count{stage="sentiment.tokenizer"}'] == 152
    assert metrics['model_latency_seconds_count{input_bucket="short"}'] == 150
    assert all(value == 0 for sample, value in metrics.items() if sample.startswith("telemetry_rows_lost"))
    third.end(0)
    assert wait_for(lambda: exporter.metrics()['telemetry_rings{state="last_flight"}'] == 2)
    assert exporter.metrics()['model_unfinished_requests_total{stage="model.forward"}'] == 1
    views = exporter.get("/api/traces?errors=1")["traces"]
    assert [view["status"] for view in views].count("unfinished") == 1
    assert seen == sorted(seen)
    assert exporter.stop(signal.SIGTERM) == 0


def test_rows_that_left_their_ring_are_found_after_kills(
    environment: dict[str, str], processes: list[Any], tmp_path: Path
) -> None:
    """The ring goes round twice while the exporter is killed again and again: each row is kept, and once."""
    exporter, worker = ExporterProcess(environment), Worker(tmp_path / "rings")
    processes += [exporter, worker]
    for _ in range(3):
        # Together with what may wait already (half a lap) less than a lap.
        worker.serve(count=7000)
        exporter.restart(signal.SIGKILL)
    table = load_rows(tmp_path / "rings", archive_dir=tmp_path / "state" / "archive")
    assert list(range(21_000)) == sorted(table["seq"].tolist())
    assert 16_384 == len(load_rows(tmp_path / "rings"))
    assert exporter.metrics()["telemetry_archive_bytes"] > 0
    first = f"{int(table['trace_hi'][0]):016x}{int(table['trace_lo'][0]):016x}"
    found = exporter.get(f"/api/traces?trace_id={first}")
    assert ("found", 1, ["ring", "archive"]) == (found["result"], len(found["traces"]), found["sources"])
    exporter.stop(signal.SIGTERM)
    assert 21_000 == archived_rows(tmp_path / "state" / "archive")


def archived_rows(folder: Path) -> int:
    """How many rows all segments hold."""
    count = 0
    for path in list_segments(folder):
        with Segment(path) as segment:
            count += sum(block.rows for block in segment.blocks())
    return count


def test_bounds_are_close_around_what_is_measured(processes: list[Any], tmp_path: Path) -> None:
    """The bounds on both sides of the P50 and P99 of real requests and stages lie within a factor of 1.6."""
    worker = Worker(tmp_path / "rings")
    processes.append(worker)
    worker.serve(count=300)
    table = load_rows(tmp_path / "rings")
    measured = {"model_latency_seconds": [table["duration_ns"] / 1e9]}
    measured["model_stage_seconds"] = [table.stage(name)[1] for name in table.stages]
    assert len(measured["model_stage_seconds"]) == 4
    checked = 0
    for name, series in measured.items():
        bounds = METRICS[name].buckets
        for quantile in (np.quantile(values, q) for values in series for q in (0.5, 0.99)):
            place = bisect_left(bounds, quantile)
            # Without sockets a request, and its `network.send`, may be quicker than anything over HTTP.
            if place:
                assert bounds[place] / bounds[place - 1] <= 1.6
                assert bounds[place - 1] <= quantile <= bounds[place]
                checked += 1
    assert checked >= 4


class Collector:
    """An OTLP target that can be down, slow or failing."""

    def __init__(self) -> None:
        self.status = 200
        self.pause = 0.0
        self.spans: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(outer.pause)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(outer.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                if outer.status == 200:
                    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                        outer.spans += [span for scope in resource.scope_spans for span in scope.spans]

            def log_message(self, *_args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        """Stop it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


def test_spans_reach_a_collector_that_comes_back(
    environment: dict[str, str], processes: list[Any], tmp_path: Path
) -> None:
    """While it fails, metrics go on; afterwards all spans are there, and exemplars point at delivered ones only."""
    collector = Collector()
    collector.status = 503
    try:
        exporter = ExporterProcess(
            {
                **environment,
                "INFERDECK_EXPORTER_OTLP_ENDPOINT": collector.address,
                "INFERDECK_EXPORTER_KEEP_SHARE": "1.0",
            }
        )
        worker = Worker(tmp_path / "rings")
        processes += [exporter, worker]
        worker.serve(count=20)
        worker.serve("/fail")
        assert wait_for(lambda: exporter.metrics()["telemetry_spans_queued"] > 0)
        assert exporter.metrics()[OK] == 20
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        address = f"http://127.0.0.1:{exporter.port}/metrics"
        assert "trace_id" not in httpx.get(address, headers=accept).text
        collector.status = 200
        assert wait_for(lambda: exporter.metrics()["telemetry_spans_queued"] == 0)
        metrics = exporter.metrics()
        assert metrics["telemetry_spans_sent_total"] == len(collector.spans)
        assert len({span.span_id for span in collector.spans}) == len(collector.spans)
        assert len({span.trace_id for span in collector.spans}) == 21
        assert metrics['telemetry_traces_kept_total{reason="error"}'] == 1
        assert all(value == 0 for sample, value in metrics.items() if sample.startswith("telemetry_spans_dropped"))
        pointed = set(re.findall(r'trace_id="([0-9a-f]{32})"', httpx.get(address, headers=accept).text))
        assert pointed
        assert pointed <= {span.trace_id.hex() for span in collector.spans}
        worker.serve("/hang")
        worker.end(signal.SIGKILL)
        assert wait_for(lambda: exporter.metrics()['telemetry_traces_kept_total{reason="unfinished"}'] == 1)
        assert wait_for(lambda: collector.spans[-1].status.code == 2 and len(collector.spans[-1].attributes) > 4)
    finally:
        collector.close()


def test_a_slow_collector_does_not_slow_scrapes_down(
    environment: dict[str, str], processes: list[Any], tmp_path: Path
) -> None:
    """A target that takes seconds per body: scrapes answer, rows are counted, and the exit stays bounded."""
    collector = Collector()
    collector.pause = 3.0
    try:
        exporter = ExporterProcess(
            {**environment, "INFERDECK_EXPORTER_OTLP_ENDPOINT": collector.address, "INFERDECK_EXPORTER_KEEP_SHARE": "1"}
        )
        worker = Worker(tmp_path / "rings")
        processes += [exporter, worker]
        for turn in range(1, 4):
            worker.serve(count=10)
            assert exporter.metrics()[OK] == 10 * turn
        assert exporter.stop(signal.SIGTERM) == 0
    finally:
        collector.close()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"INFERDECK_EXPORTER_HOST": "0.0.0.0"}, "INFERDECK_EXPORTER_API_TOKEN"),
        ({"INFERDECK_EXPORTER_PORT": "taken"}, "INFERDECK_EXPORTER_PORT"),
        ({"INFERDECK_STATE_DIR": "/proc/nowhere"}, "INFERDECK_STATE_DIR"),
        ({"INFERDECK_EXPORTER_KEEP_SHARE": "lots"}, "KEEP_SHARE"),
        ({"INFERDECK_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "http://"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(
    environment: dict[str, str], changed: dict[str, str], said: str
) -> None:
    """Exit status 2 and one line with the mend."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        values = {name: str(port) if value == "taken" else value for name, value in changed.items()}
        done = subprocess.run(
            [sys.executable, "-m", "exporters"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
            env={**os.environ, "INFERDECK_EXPORTER_PORT": "0", **environment, **values},
        )  # fmt: skip
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert said.lower() in lines[0].lower()
