from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from exporters.exporter import Exporter
from exporters.lookup import find_session
from exporters.rows import OpenRequest, load_rows
from exporters.settings import ExporterSettings

HERE = Path(__file__).resolve().parent
WORKERS = 3
STAGES = (
    "network.receive",
    "sentiment.preprocess",
    "scheduler.dispatch",
    "sentiment.tokenizer",
    "model.forward",
    "postprocess.confidence",
    "network.send",
)
# The body of a request to network.receive never comes whole; what the others ask for hangs in the app.
REQUEST = "POST /{stage} HTTP/1.1\r\nHost: x\r\nX-Session-Id: {session}\r\nContent-Length: {length}\r\n\r\n{{}}"


def wait(what: Callable[[], bool]) -> None:
    """Wait until it is true."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if what():
            return
        time.sleep(0.02)
    pytest.fail("waited 30 s in vain")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run uvicorn with several workers; ended by its pid, its workers with it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen(64)
        port = bound.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "stages_app:app", "--fd", str(bound.fileno()), "--workers", str(WORKERS),
             "--log-level", "error", "--timeout-graceful-shutdown", "1"],
            cwd=HERE, pass_fds=[bound.fileno()], env={**os.environ, "INFERDECK_RING_DIR": str(tmp_path / "rings")},
        )  # fmt: skip
    yield port
    server.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(20)
    server.kill()
    server.wait(5)


def test_a_killed_worker_tells_the_stage_of_each_request(tmp_path: Path, port: int) -> None:
    """A request that hangs in a stage names it, alive and after SIGKILL; no answered request loses its row by it."""
    settings = ExporterSettings(ring_dir=tmp_path / "rings", state_dir=tmp_path / "state", tick_seconds=0.1)
    exporter = Exporter(settings)
    exporter.start()
    answered = 0

    def hanging() -> list[OpenRequest]:
        return [request for request in load_rows(exporter.ring_dir).open if request.session == session]

    def hangs_where_it_should() -> bool:
        return [request.stage for request in hanging()] == [stage]

    def is_dead() -> bool:
        return [request.alive for request in hanging()] == [False]

    with contextlib.ExitStack() as wires:
        for number, stage in enumerate(STAGES):
            session = f"session-{number:016d}"
            wire = wires.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            length = 100 if stage == "network.receive" else 2
            wire.sendall(REQUEST.format(stage=stage, session=session, length=length).encode())
            wait(hangs_where_it_should)
            for _ in range(5):
                assert "done" == httpx.post(f"http://127.0.0.1:{port}/none", timeout=30).text
                answered += 1
            [request] = hanging()
            assert request.alive
            os.kill(request.pid, signal.SIGKILL)
            wait(is_dead)

    told = {request.session: request.stage for request in load_rows(exporter.ring_dir).open}
    views = [find_session(exporter.ring_dir, f"session-{number:016d}")[0] for number in range(len(STAGES))]
    wait(lambda: sum(unfinished(exporter).values()) == len(STAGES))
    counted = unfinished(exporter)
    rows = load_rows(exporter.ring_dir)
    exporter.stop()

    assert {f"session-{number:016d}": stage for number, stage in enumerate(STAGES)} == told
    assert list(STAGES) == [view.last_stage for view in views]
    assert {"unfinished"} == {view.status for view in views}
    assert dict.fromkeys(STAGES, 1) == counted
    assert answered == len(rows)


def unfinished(exporter: Exporter) -> dict[str, float]:
    """Return the requests that died with their worker, by stage, as a scrape shows them."""
    return {
        sample.labels["stage"]: sample.value
        for family in exporter.collect()
        for sample in family.samples
        if sample.name == "model_unfinished_requests_total" and sample.value
    }
