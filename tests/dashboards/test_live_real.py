"""All that the dashboards ask is asked of a real Prometheus, with the service under load and a failure on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

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

# Not seen in this stack, each for the reason that its board gives.
EMPTY = {
    "serving/triton-requests", "serving/triton-pending", "serving/triton-batch", "serving/triton-time",
    "serving/triton-whole", "gpu/utilisation", "gpu/engines", "gpu/memory", "gpu/clock", "gpu/temperature", "gpu/power",
    "gpu/xid", "model-data/confidence-day", "telemetry/probes", "overview/error-budget",
}  # fmt: skip
# A stack of one service, in which no worker ends.
EMPTY_AROUND = {"$service", "@Ended workers"}


class _Collector(BaseHTTPRequestHandler):
    """Takes spans, as a collector would: only of delivered ones are exemplars made."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def collector() -> Iterator[str]:
    """Serve a collector on a free port and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
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


@pytest.mark.real
@pytest.mark.timeout(400)
def test_every_query_variable_and_annotation_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is empty is what its board says can be, the alert that fires is shown everywhere, and pictures are drawn."""
    tools = find_tools()
    if not {"prometheus", "prometheus-alertmanager"} <= set(tools):
        if os.environ.get("CI") == "true":
            pytest.fail("Prometheus and Alertmanager are missing in CI: run `make setup`")
        pytest.skip("Prometheus and Alertmanager are not here: run `make setup`")
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("INFERDECK_SERVICE_MODEL_DIR", str(ROOT / "build" / "model"))
    settings, program = load_settings(), read_program(failures_folder() / "event_loop_blocked.py")
    prepare_model(settings.model_path, lambda _what, _share: None)
    with collector() as otlp:
        monkeypatch.setenv("INFERDECK_EXPORTER_OTLP_ENDPOINT", otlp)
        plan = with_program(fresh_plan(settings, tools, tmp_path / "state"), program, "wrap")
        plan = replace(plan, inherit_settings=True)
        begin = time.time()
        traffic = TrafficPlan(plan.url("service_port"), 20.0, 600.0, seed=1)
        with open_scene(plan, traffic, lambda _line: None) as scene:
            settle(scene, 20.0, lambda _line: None)
            with caused(program, scene):
                assert wait_for_alert(scene, "event_loop_blocked", RunPlan()) is not None
                # One more evaluation, so that what shows alerts has a point within the time that is asked about.
                time.sleep(10)
                found = answers_of(plan.url("prometheus_port"), begin)
                drawn = draw(
                    [
                        "--prometheus",
                        plan.url("prometheus_port"),
                        "--out",
                        str(tmp_path),
                        "--minutes",
                        "3",
                        "--board=overview",
                    ]
                )

    assert [] == [f"{answer.question.where}: {answer.detail}" for answer in found if answer.wrong]
    empty = {answer.question.where for answer in found if answer.state == "empty"}
    assert {where.split()[0] for where in empty if "/" in where} <= EMPTY
    assert {where.partition(" ")[2] for where in empty if "/" not in where} <= EMPTY_AROUND
    kinds = {answer.question.kind for answer in found if answer.state == "data"}
    assert {"query", "variable", "annotation", "exemplars"} == kinds
    assert 0 == drawn
    picture = (tmp_path / "inferdeck-overview.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000
