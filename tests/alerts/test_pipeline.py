"""The whole way in the real programs: a scraped value, a rule, Alertmanager's route, the webhook's payload."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from alerts.alertmanager_config import render_alertmanager
from alerts.load import load_catalogue
from alerts.prometheus_config import Scrape, render_prometheus
from alerts.promtool import find_tool

RULES = sorted((Path(__file__).resolve().parents[2] / "alerts" / "rules").glob("*.yml"))

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("tools")]


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(answer: Callable[[bytes], str]) -> Iterator[str]:
    """Serve `answer(body)` to every request on a port of its own, and give its address as host:port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            text = answer(self.rfile.read(int(self.headers.get("Content-Length", 0)))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running(name: str, folder: Path, *arguments: str) -> Iterator[None]:
    """Run a tool until the body ends; its output lies in the folder."""
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([str(find_tool(name)), *arguments], cwd=folder, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def ask(url: str, body: object = None) -> Any:
    """Return the JSON that an address answers."""
    answer = httpx.request("GET" if body is None else "POST", url, json=body, timeout=5)
    answer.raise_for_status()
    return answer.json() if answer.content else None


def is_ready(address: str) -> bool:
    """Return whether a program says that it is ready."""
    return httpx.get(f"http://{address}/-/ready", timeout=5).status_code == 200


def until(seconds: float, condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds, at most so long; an address that does not answer yet is a condition not met."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.25)
    return False


@dataclass
class Exporter:
    """A small exposition: a loop that blocks all the time once `blocked_since` is set."""

    blocked_since: float | None = None

    def exposition(self, _: bytes) -> str:
        """Return the metrics of this moment."""
        seconds = 0.0 if self.blocked_since is None else time.monotonic() - self.blocked_since
        ticks = int(seconds * 5)
        return (
            f"runtime_event_loop_blocked_seconds_total {seconds}\n"
            f'runtime_event_loop_lag_seconds_bucket{{le="0.1"}} 1000\n'
            f"runtime_event_loop_lag_seconds_count {1000 + ticks}\n"
            f'model_worker_up{{worker="0"}} 1\n'
        )


@dataclass
class Stack:
    """What runs, and what its webhook has heard."""

    prometheus: str
    alertmanager: str
    exporter: Exporter
    payloads: list[dict[str, Any]] = field(default_factory=list)

    def heard(self) -> set[tuple[str, str]]:
        """Return receiver and alert name of all that arrived firing."""
        return {
            (payload["receiver"], alert["labels"]["alertname"])
            for payload in self.payloads
            for alert in payload["alerts"]
            if alert["status"] == "firing"
        }

    def states(self) -> dict[tuple[str, str], str]:
        """Return Alertmanager's state of each alert by its name and service."""
        return {
            (alert["labels"]["alertname"], alert["labels"]["service"]): alert["status"]["state"]
            for alert in ask(f"http://{self.alertmanager}/api/v2/alerts")
        }


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """The real Prometheus and Alertmanager with our rules, an exporter that answers, and a service that does not."""
    alertmanager, prometheus = (f"127.0.0.1:{free_port()}" for _ in range(2))
    stack = Stack(prometheus, alertmanager, Exporter())

    def hook(body: bytes) -> str:
        stack.payloads.append(json.loads(body))
        return "{}"

    with ExitStack() as all_of_it:
        webhook = all_of_it.enter_context(served(hook))
        exporter = all_of_it.enter_context(served(stack.exporter.exposition))
        (tmp_path / "alertmanager.yml").write_text(render_alertmanager(f"http://{webhook}/webhook"))
        scrapes = [Scrape("inferdeck-exporter", exporter), Scrape("service", f"127.0.0.1:{free_port()}")]
        (tmp_path / "prometheus.yml").write_text(render_prometheus(scrapes, alertmanager, RULES, 1))
        listen = "--web.listen-address="
        arguments = ["--config.file=alertmanager.yml", f"{listen}{alertmanager}", "--cluster.listen-address="]
        # Debian's default lies in /var/lib: what was notified in an earlier run would not be notified again.
        all_of_it.enter_context(running("prometheus-alertmanager", tmp_path, *arguments, "--storage.path=alertmanager"))
        # What fires before Prometheus has found its Alertmanager is lost until sent again, by default a minute later.
        arguments = ["--config.file=prometheus.yml", f"{listen}{prometheus}", "--storage.tsdb.path=prometheus"]
        all_of_it.enter_context(running("prometheus", tmp_path, *arguments, "--rules.alert.resend-delay=2s"))
        for address in (alertmanager, prometheus):
            assert until(30, partial(is_ready, address))
        yield stack


def test_what_is_scraped_arrives_at_the_right_receiver_and_causes_silence_symptoms(stack: Stack) -> None:
    """A blocked loop and a dead service page, nothing else does, and they inhibit late answers of the same service."""
    groups = ask(f"http://{stack.prometheus}/api/v1/rules")["data"]["groups"]
    named = sorted(group["name"] for group in groups if not group["name"].startswith("record_"))
    assert sorted(alert.slug for alert in load_catalogue()) == named
    assert until(15, lambda: ("dead_man", "Watchdog") in stack.heard())
    assert {("dead_man", "Watchdog")} == stack.heard()

    stack.exporter.blocked_since = time.monotonic()
    both = {("page", "EventLoopBlocked"), ("page", "ServiceDown"), ("dead_man", "Watchdog")}

    assert until(60, lambda: both <= stack.heard()), stack.heard()
    assert both == stack.heard()
    assert {"sentiment"} == {payload["commonLabels"]["service"] for payload in stack.payloads}
    labels = {"alertname": "LatencyObjectiveMissed", "slug": "latency_objective", "channel": "page"}
    ask(
        f"http://{stack.alertmanager}/api/v2/alerts", [{"labels": {**labels, "service": s}} for s in ("sentiment", "x")]
    )
    assert until(30, lambda: ("page", "LatencyObjectiveMissed") in stack.heard())
    assert "suppressed" == stack.states()["LatencyObjectiveMissed", "sentiment"]
    assert "active" == stack.states()["LatencyObjectiveMissed", "x"]
    late = [payload for payload in stack.payloads if payload["commonLabels"]["alertname"] == "LatencyObjectiveMissed"]
    assert {"x"} == {payload["commonLabels"]["service"] for payload in late}
