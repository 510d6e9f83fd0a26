"""Two worker processes with a canary that gives other labels: both follow the state, and a restart keeps it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inferdeck.stack.ports import free_ports
from inferdeck.version import ROOT
from service.canary.state import CanaryStore
from service.training.ensure import ensure_model
from tests.failures._versions import add, write_version

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
BODY = json.dumps({"text": "房间很干净，服务员态度也好。", "product_id": "HT20240117"})


def flipping(folder: Path) -> Path:
    """Write a version whose logits have the other sign."""
    model = ROOT / "build" / "model"
    ensure_model(model, lambda _what, _share: None)
    return write_version(model, folder, lambda graph: add(graph, "Neg", ["before"], "logits"))


@contextmanager
def service(tmp_path: Path, port: int, admin: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run two workers until the body ends."""
    environment = os.environ | {
        "INFERDECK_STATE_DIR": str(tmp_path / "state"),
        "INFERDECK_RING_DIR": str(tmp_path / "rings"),
        "INFERDECK_SERVICE_MODEL_DIR": str(ROOT / "build" / "model"),
        "INFERDECK_SERVICE_PORT": str(port),
        "INFERDECK_SERVICE_ADMIN_PORT": str(admin),
        "INFERDECK_SERVICE_WORKERS": "2",
        "INFERDECK_SERVICE_CANARY_COMPARE_SHARE": "1",
    }
    with (tmp_path / "service.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "service"], env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def answered_by(port: int) -> str:
    """Return which version answered one request on a connection of its own; empty while only one is served."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/v1/sentiment", BODY, {"content-type": "application/json"})
        response = connection.getresponse()
        response.read()
        return (response.getheader("x-model-version") or "") if response.status == 200 else "none"
    except OSError:
        return "none"
    finally:
        connection.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what other processes bring about."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "waited 60 seconds for nothing"
        time.sleep(0.05)


def test_both_workers_take_it_back_and_a_restart_does_not_bring_it_again(tmp_path: Path) -> None:
    """At a share of one every answer is the canary's; it flips labels; once one worker decides, nobody asks it."""
    port, admin = free_ports(2)
    store = CanaryStore(tmp_path / "state" / "service" / "canary")
    store.set(model=str(flipping(tmp_path / "v2")), share=1.0)
    with service(tmp_path, port, admin):
        wait_until(lambda: answered_by(port) not in {"", "none"})

        def taken_back() -> bool:
            for _ in range(20):
                answered_by(port)
            state = store.read()
            return state is not None and state.rolled_back

        wait_until(taken_back)
        # Connections reach both workers; each has followed.
        wait_until(lambda: {""} == {answered_by(port) for _ in range(20)})
    state = store.read()
    assert state is not None
    assert (0.0, 1) == (state.share, state.rollbacks["flips"])
    with service(tmp_path, port, admin):
        wait_until(lambda: answered_by(port) != "none")
        time.sleep(1.5)  # longer than the look at the state
        assert {""} == {answered_by(port) for _ in range(20)}
    told = (tmp_path / "service.log").read_text(encoding="utf-8", errors="replace")
    assert 1 == told.count("canary rolled back: flips")
