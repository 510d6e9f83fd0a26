"""All that the dashboards ask is asked of a real Prometheus, with the service under load and a failure on."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from dashboards.boards import session
from dashboards.build import build_board
from dashboards.catalogue import BOARDS
from dashboards.live import Answer, ask, choices_of, questions
from dashboards.macros import Moment
from dashboards.prometheus_http import Prometheus
from dashboards.render.__main__ import main as draw
from dashboards.thresholds import load_alerts
from inferdeck.drill.program import failures_folder, read_program
from inferdeck.drill.run import RunPlan, caused, settle, wait_for_alert
from inferdeck.drill.scene import fresh_plan, open_scene, with_program
from inferdeck.settings import load_settings
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.traffic import TrafficPlan
from inferdeck.version import ROOT
from tests.containers.images import jaeger_binary

# Not seen in this stack, each for the reason that its board gives.
EMPTY = {
    "serving/triton-requests",
    "serving/triton-pending",
    "serving/triton-batch",
    "serving/triton-time",
    "serving/triton-whole",
    "serving/triton-exits",
    "serving/triton-connections",
    "serving/triton-canary",
    "serving/triton-fallback",
    "gpu/cards",
    "gpu/utilisation",
    "gpu/engines",
    "gpu/memory",
    "gpu/clock",
    "gpu/temperature",
    "gpu/power",
    "gpu/xid",
    "gpu/owners",
    "gpu/room",
    "gpu/throttle",
    "gpu/kernels",
    "gpu/load",
    "model-data/confidence-day",
    "model-data/photo-sharpness",
    "model-data/stream-messages",
    "model-data/stream-letters",
    "model-data/stream-lag",
    "model-data/stream-waiting",
    "model-data/stream-windows",
    "model-data/stream-length",
    "model-data/stream-shares",
    "model-data/stream-shift",
    "model-data/version-flips",
    "model-data/version-time",
    "serving/model-memory-free",
    "serving/replay",
    "telemetry/probes",
    "telemetry/reach",
    "telemetry/follow-ups",
    "overview/error-budget",
}
# A stack of one service, in which no worker ends.
EMPTY_AROUND = {"$service", "@Ended workers"}


@dataclass
class Seen:
    """What the run left: answers, spans as they came, traces of exemplars, a picture."""

    answers: list[Answer] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    picture: Path = Path()
    drawn: int = -1


@contextmanager
def collector(bodies: list[bytes]) -> Iterator[str]:
    """Take spans as a collector would, for only of delivered ones are exemplars made; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

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


def answers_of(url: str, begin: float) -> list[Answer]:
    """Return the answers to all that the dashboards ask about the time since *begin*."""
    prometheus, alerts = Prometheus(url), load_alerts()
    found = []
    for board in BOARDS:
        moment = Moment(begin, time.time(), 5.0, 5.0, choices_of(board))
        found += ask(list(questions(board, build_board(board, alerts))), prometheus, moment)
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Run the stack under load until an alert fires, and ask everything; once for all tests here."""
    tools = find_tools()
    if not {"prometheus", "prometheus-alertmanager"} <= set(tools):
        if os.environ.get("CI") == "true":
            pytest.fail("Prometheus and Alertmanager are missing in CI: run `make setup`")
        pytest.skip("Prometheus and Alertmanager are not here: run `make setup`")
    folder, found = tmp_path_factory.mktemp("live"), Seen()
    with pytest.MonkeyPatch.context() as environment, collector(found.bodies) as otlp:
        environment.setenv("INFERDECK_STATE_DIR", str(folder / "state"))
        environment.setenv("INFERDECK_SERVICE_MODEL_DIR", str(ROOT / "build" / "model"))
        environment.setenv("INFERDECK_EXPORTER_OTLP_ENDPOINT", otlp)
        settings, program = load_settings(), read_program(failures_folder() / "event_loop_blocked.py")
        prepare_model(settings.model_path, lambda _what, _share: None)
        plan = with_program(fresh_plan(settings, tools, folder / "state"), program, "wrap")
        plan, begin = replace(plan, inherit_settings=True), time.time()
        url = plan.url("prometheus_port")
        with open_scene(plan, TrafficPlan(plan.url("service_port"), 20.0, 600.0, seed=1), lambda _line: None) as scene:
            settle(scene, 20.0, lambda _line: None)
            with caused(program, scene):
                assert wait_for_alert(scene, "event_loop_blocked", RunPlan()) is not None
                # Two more evaluations, so that what shows alerts has a point within the time that is asked about.
                time.sleep(10)
                found.answers = answers_of(url, begin)
                shown = Prometheus(url).exemplars("model_latency_seconds_bucket", begin, time.time())
                found.traces = [str(item["labels"]["trace_id"]) for item in shown]
                found.picture = folder / "inferdeck-overview.png"
                arguments = ["--prometheus", url, "--out", str(folder), "--minutes", "3", "--board=overview"]
                found.drawn = draw(arguments)
    return found


@pytest.mark.real
@pytest.mark.timeout(400)
def test_every_query_variable_and_annotation_is_answered(seen: Seen) -> None:
    """What is empty is what its board says can be, and the alert that fires is shown wherever alerts are."""
    assert [] == [f"{answer.question.where}: {answer.detail}" for answer in seen.answers if answer.wrong]
    empty = {answer.question.where for answer in seen.answers if answer.state == "empty"}
    assert {where.split()[0] for where in empty if "/" in where} <= EMPTY
    assert {where.partition(" ")[2] for where in empty if "/" not in where} <= EMPTY_AROUND
    kinds = {answer.question.kind for answer in seen.answers if answer.state == "data"}
    assert {"query", "variable", "annotation", "exemplars"} == kinds


@pytest.mark.real
@pytest.mark.timeout(400)
def test_a_picture_is_drawn_from_the_running_stack(seen: Seen) -> None:
    """Small enough to be committed."""
    assert 0 == seen.drawn
    picture = seen.picture.read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000


def sessions_of(trace: dict[str, Any]) -> set[str]:
    """Return the sessions that a trace's spans name, by the attribute that the board searches for."""
    return {tag["value"] for span in trace["spans"] for tag in span["tags"] if tag["key"] == "session_id"}


def free_ports(number: int) -> list[int]:
    """Return ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(item.getsockname()[1]) for item in sockets]
    for item in sockets:
        item.close()
    return ports


@contextmanager
def jaeger(folder: Path) -> Iterator[tuple[str, str]]:
    """Run Jaeger with the links of its pages that are shipped; yield its addresses for spans and for questions."""
    otlp, query, grpc, health = free_ports(4)
    config: dict[str, Any] = {
        "service": {
            "extensions": ["jaeger_storage", "jaeger_query", "healthcheckv2"],
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}},
            "telemetry": {"metrics": {"level": "none"}},
        },
        "extensions": {
            "jaeger_storage": {"backends": {"memory": {"memory": {"max_traces": 10000}}}},
            "jaeger_query": {
                "storage": {"traces": "memory"},
                "http": {"endpoint": f"127.0.0.1:{query}"},
                "grpc": {"endpoint": f"127.0.0.1:{grpc}"},
                "ui": {"config_file": str(ROOT / "dashboards" / "provisioning" / "jaeger-ui.json")},
            },
            "healthcheckv2": {"use_v2": True, "http": {"endpoint": f"127.0.0.1:{health}"}},
        },
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{otlp}"}}}},
        "exporters": {"jaeger_storage_exporter": {"trace_storage": "memory"}},
    }
    # JSON is YAML.
    (folder / "jaeger.yaml").write_text(json.dumps(config))
    with (folder / "jaeger.log").open("wb") as log:
        process = subprocess.Popen(
            [str(jaeger_binary()), "--config", str(folder / "jaeger.yaml")], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{query}/api/services", timeout=2).raise_for_status()
                break
            except httpx.HTTPError:
                assert process.poll() is None, (folder / "jaeger.log").read_text()[-2000:]
                assert time.monotonic() < deadline, (folder / "jaeger.log").read_text()[-2000:]
                time.sleep(0.3)
        yield f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{query}"
    finally:
        process.terminate()
        process.wait(20)


# A fresh machine compiles Jaeger first, once for all tests.
@pytest.mark.real
@pytest.mark.timeout(1700)
def test_exemplars_and_sessions_lead_to_traces_in_jaeger(seen: Seen, tmp_path: Path) -> None:
    """The trace of an exemplar is found by its id, its session by the board's search, and its spans are the steps."""
    search = build_board(session.BOARD, load_alerts())["panels"][1]["targets"][0]
    with jaeger(tmp_path) as (otlp, query):
        for body in seen.bodies:
            headers = {"Content-Type": "application/x-protobuf"}
            httpx.post(f"{otlp}/v1/traces", content=body, headers=headers, timeout=10).raise_for_status()
        one = httpx.get(f"{query}/api/traces/{seen.traces[0]}", timeout=10).json()["data"][0]
        [owner] = sessions_of(one)
        # As Grafana's plugin turns the board's logfmt into Jaeger's JSON.
        key, _, value = search["tags"].replace("${session_id}", owner).partition("=")
        asked = {"service": "sentiment", "tags": json.dumps({key: value.strip('"')}), "limit": search["limit"]}
        found = httpx.get(f"{query}/api/traces", params=asked, timeout=10).json()["data"]
        page = httpx.get(f"{query}/search", timeout=10)

    assert "search" == search["queryType"]
    assert seen.traces[0] in {trace["traceID"] for trace in found}
    assert {"model.forward", "sentiment.tokenizer"} <= {span["operationName"] for span in one["spans"]}
    assert all({owner} == sessions_of(trace) for trace in found)
    assert 200 == page.status_code
