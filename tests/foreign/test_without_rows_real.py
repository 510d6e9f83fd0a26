"""Services that are not ours and have no rows: scraped by a real Prometheus, broken for real, triaged by a mapping."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from inferdeck.schema import validate
from inferdeck.stack.commands import find_tools
from tests.inferdeck.stack.test_up_down import need_prometheus

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEALTHY_SECONDS = 32.0
BROKEN_SECONDS = 30.0


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


class Place:
    """Processes of one test, stopped by their handles."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *argv: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a process with its output in a file."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(argv, cwd=HERE, env={**os.environ, **environment}, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def app(self, name: str, **environment: str) -> tuple[str, subprocess.Popen[bytes]]:
        """Serve an app; return its address once it answers."""
        port = free_port()
        argv = (sys.executable, "-m", "uvicorn", f"{name}:app", "--port", str(port), "--no-access-log")
        process = self.start(*argv, **environment)
        self.wait(f"http://127.0.0.1:{port}/digits/1")
        return f"127.0.0.1:{port}", process

    def prometheus(self, targets: dict[str, str]) -> str:
        """Run Prometheus over the targets, by job, and return its address."""
        port = free_port()
        jobs = [{"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()]
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "2s"}, "scrape_configs": jobs}))
        self.start(
            find_tools()["prometheus"],
            f"--config.file={config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        self.wait(f"http://127.0.0.1:{port}/-/ready")
        return f"http://127.0.0.1:{port}"

    def wait(self, url: str) -> None:
        """Wait until an address answers 200."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(url, trust_env=False).status_code == 200:
                    return
            time.sleep(0.1)
        pytest.fail(f"{url} does not answer: {(self.folder / 'log').read_text()[-2000:]}")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Yield a place and stop what was started there."""
    place = Place(tmp_path)
    yield place
    for process in place.running:
        process.kill()
        process.wait(10)


@contextlib.contextmanager
def traffic(*targets: str, rate: float = 12.0) -> Iterator[None]:
    """Send requests to each target while the body runs."""
    over = threading.Event()

    def send(target: str) -> None:
        with httpx.Client(base_url=f"http://{target}", trust_env=False, timeout=5) as client:
            while not over.wait(1 / rate):
                with contextlib.suppress(httpx.HTTPError):
                    client.get("/digits/a1b2")

    threads = [threading.Thread(target=send, args=(target,)) for target in targets for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(10)


def inferdeck(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run a verb with --json; return its exit code and its result."""
    done = subprocess.run(
        [sys.executable, "-m", "inferdeck", *words, "--json"],
        cwd=ROOT,
        env={**os.environ, "INFERDECK_STATE_DIR": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_services_without_rows_are_told_by_their_own_metrics(place: Place, tmp_path: Path) -> None:
    """A fault shows as errors and latency without a cause being made up; a killed service is named; costs are said."""
    need_prometheus()
    shop, _ = place.app("instrumentator_app")
    old, _ = place.app("otel_metrics_app")
    gone, process = place.app("otel_metrics_app", OTEL_SEMCONV_STABILITY_OPT_IN="http")
    url = place.prometheus({"shop": shop, "old": old, "gone": gone})
    with traffic(shop, old, gone):
        time.sleep(HEALTHY_SECONDS)
        doctors = [inferdeck(tmp_path, "doctor", "--prometheus", url, "--mapping", name) for name in MAPPINGS]
        calm = inferdeck(tmp_path, "triage", "--prometheus", url, "--mapping", "opentelemetry-fastapi-old")
        httpx.post(f"http://{shop}/break", trust_env=False).raise_for_status()
        process.kill()
        time.sleep(BROKEN_SECONDS)
        reports = [inferdeck(tmp_path, "triage", "--prometheus", url, "--mapping", name) for name in MAPPINGS]

    for code, found in doctors:
        states = {check["name"]: check["state"] for check in found["checks"]}
        assert (0, "ok", "ok", "ok") == (
            code,
            states["model_requests_total"],
            states["model_latency_seconds"],
            states["runtime_process_resident_memory_bytes"],
        ), found
    for _, report in [calm, *reports]:
        validate("triage", report)
        assert ["ring"] == report["missing_sources"]
        assert "which requests: no row" in " ".join(report["cannot_be_told"])
        unseen = [one["detail"] for one in report["evidence"] if one["source"] == "ring" and one["value"] is None]
        assert unseen
        assert all(text.startswith("cannot be told without rows") for text in unseen)
    assert (1, True, []) == (calm[0], calm[1]["abstained"], calm[1]["symptoms"]), calm[1]
    broken, killed, healthy = (report for _, report in reports)
    assert {"error_rate", "latency"} == {one["symptom"] for one in broken["symptoms"]}, broken
    assert (True, None) == (broken["abstained"], broken["verdict"]["slug"])
    assert broken["window"]["onset"] is not None
    shares = {one["symptom"]: one["now"] for one in broken["symptoms"]}
    # a quarter of the requests fail; what was sent in the last healthy seconds, four times as fast, dilutes it
    assert 0.1 < shares["error_rate"] < 0.35
    assert 0.25 < shares["latency"] < 0.6
    assert "service_down" == killed["verdict"]["slug"], killed
    assert (True, []) == (healthy["abstained"], healthy["symptoms"]), healthy


MAPPINGS = ("fastapi-instrumentator", "opentelemetry-fastapi", "opentelemetry-fastapi-old")
