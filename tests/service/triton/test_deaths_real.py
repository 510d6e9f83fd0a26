"""A real Triton, and every way in which it dies: what is seen, what mends it, and that somebody answers meanwhile.

Its environment is fetched when it is missing (20 s); with CI=true it must be there.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

from exporters.rows import load_rows
from inferdeck.stack.ports import free_ports
from inferdeck.stack.triton import triton_folder
from inferdeck.version import ROOT
from service.app import create_app
from service.artifacts import SINGLE_FILE
from service.backend import OnnxBackend, pad
from service.backend_triton import TritonBackend
from service.breaker import Breaker
from service.loading import load_onnx
from service.recording import NO_RECORD
from service.training.ensure import ensure_model
from service.triton.home import InstallError, install
from service.triton.repository import MODEL
from service.triton.transport import TritonError, TritonHttp

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
SHM = Path("/dev/shm")  # noqa: S108 - where the regions are
TEXT = "房间很干净，服务员态度也好"


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=3) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@dataclass
class Running:
    """A supervised Triton and a backend that asks it."""

    process: subprocess.Popen[bytes]
    http_port: int
    metrics_port: int
    admin_port: int
    work: Path
    local: OnnxBackend
    backend: TritonBackend

    def metric(self, name: str, **labels: str) -> float:
        """Return a figure of the supervisor."""
        told = ",".join(f'{key}="{value}"' for key, value in labels.items())
        wanted = f"{name}{{{told}}}" if told else name
        found = re.search(rf"^{re.escape(wanted)} (\S+)$", _get(self.admin_port, "/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else -1.0

    def canary_is(self, state: str) -> bool:
        """Return whether that is what the last canary came to."""
        return self.metric("model_triton_canary_state", state=state) == 1.0

    def processes(self, name: str) -> list[int]:
        """Return the live processes of that program below the supervisor."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if child.name().startswith(name) and child.status() != psutil.STATUS_ZOMBIE:
                    found.append(child.pid)
            except psutil.NoSuchProcess:
                continue
        return found

    @property
    def server(self) -> int:
        """Return tritonserver."""
        (pid,) = self.processes("tritonserver")
        return pid

    def answer(self) -> str | None:
        """Ask the backend for a judgement that must be right, and return why it was not Triton's."""
        ids, mask = pad([self.local.encode(TEXT).ids])
        got = self.backend.infer(ids, mask, NO_RECORD, 1.5)
        assert np.array_equal(self.local.forward(ids, mask), got.logits)
        return got.degraded

    def until(self, condition: Callable[[], bool], seconds: float = 40.0) -> None:
        """Wait for something."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until or self.process.poll() is not None:
                tail = (self.work / "tritonserver.log").read_text(errors="replace")[-1500:]
                pytest.fail(f"waited in vain; the server said: {tail}")
            time.sleep(0.1)

    def well(self) -> bool:
        """Return whether the supervisor says that all is well, and Triton itself answers."""
        return _get(self.admin_port, "/healthz/ready")[0] == 200 and self.answer() is None


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a supervised real Triton; its deaths leave it alive again."""
    try:
        home = install(triton_folder())
    except InstallError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    model = ROOT / "build" / "model"
    ensure_model(model, lambda _what, _share: None)
    if not (model / SINGLE_FILE).exists():
        pytest.skip("build/model was trained before training wrote both versions; `make train` mends it")
    work = tmp_path_factory.mktemp("triton")
    http_port, metrics_port, admin_port = free_ports(3)
    argv = [sys.executable, "-P", "-m", "service.triton", "--home", str(home.folder), "--models", str(model)]
    argv += ["--work", str(work), "--http-port", str(http_port), "--metrics-port", str(metrics_port)]
    argv += ["--admin-port", str(admin_port), "--hang-seconds", "3"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (work / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(argv, env=environment, stderr=log, start_new_session=True)
    local, _ = load_onnx(model, 0)
    client = TritonHttp("127.0.0.1", http_port, MODEL, 4)
    backend = TritonBackend(local, client, Breaker(3, 0.2, 1.0), timeout_seconds=0.9, pad_tokens=512)
    running = Running(process, http_port, metrics_port, admin_port, work, local, backend)
    try:
        running.until(running.well)
        yield running
    finally:
        backend.close()
        process.terminate()
        try:
            process.wait(30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert [] == list(SHM.glob(f"inferdeck-triton-{process.pid}-*"))


@pytest.fixture(autouse=True)
def well(triton: Running) -> None:
    """Let each test find it alive, whatever the one before did to it."""
    triton.until(triton.well)


def test_it_answers_as_the_model_in_process_does_and_both_versions_are_there(triton: Running) -> None:
    """Bit for bit; version 1 is another model; a version that does not exist is an error that says so."""
    ids, mask = pad([triton.local.encode(TEXT).ids])
    client = TritonHttp("127.0.0.1", triton.http_port, MODEL, 1)
    one, two = (client.infer(ids, mask, version=version, seconds=5.0) for version in "12")

    assert np.array_equal(triton.local.forward(ids, mask), two)
    assert not np.array_equal(one, two)
    with pytest.raises(TritonError, match="version 7") as caught:
        client.infer(ids, mask, version="7", seconds=5.0)
    assert "unloaded" == caught.value.reason
    assert 'nv_inference_request_success{model="sentiment",version="2"}' in _get(triton.metrics_port, "/metrics")[1]
    client.close()


@pytest.mark.anyio
async def test_the_service_serves_both_versions_and_one_stands_behind_the_other(
    triton: Running,
    *,
    make_settings: Any,
    good: dict[str, str],
    until: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By name, from one repository; a version that is taken out of it is answered for by the other."""
    # One process has one way to reach its model; services of tests before this one had theirs in process.
    monkeypatch.setattr("probes.plan._declared", {})
    settings = make_settings(
        backend="triton", triton_port=triton.http_port, model_dir=ROOT / "build" / "model", canary_model="triton:1"
    )
    app = create_app(settings)
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://t") as client:
        await until(lambda: app.state.worker.canary().state == "idle")
        told = {}
        for name in ("stable", "canary"):
            response = await client.post("/v1/sentiment", json=good, headers={"x-model-version": name})
            told[name] = (response.headers["x-model-version"], response.json()["confidence"])
            assert "x-degraded" not in response.headers
        assert ("triton-1", triton.local.version) == (told["canary"][0], told["stable"][0])
        assert told["canary"][1] != told["stable"][1]
        os.kill(triton.server, signal.SIGKILL)
        response = await client.post("/v1/sentiment", json=good, headers={"x-model-version": "canary"})
        assert (200, "fallback", triton.local.version) == (
            response.status_code,
            response.headers["x-degraded"],
            response.headers["x-model-version"],
        )
    assert "error" in load_rows(tmp_path / "rings").columns["request/version_failed"].tolist()


def test_equal_shapes_share_a_batch_and_one_bad_row_costs_nobody_else(triton: Running) -> None:
    """Eight at one time, one with an id out of range: seven answers and one error, by a server that lives on."""
    from concurrent.futures import ThreadPoolExecutor

    client = TritonHttp("127.0.0.1", triton.http_port, MODEL, 8)
    ids = np.full((1, 16), 7, dtype=np.int64)
    mask = np.ones_like(ids)

    def ask(number: int) -> str:
        try:
            client.infer(ids if number else ids * 0 + 999_999, mask, version="2", seconds=10.0)
        except TritonError as error:
            return error.reason
        return "fine"

    pid = triton.server
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))

    assert ["error"] + ["fine"] * 7 == found
    assert pid == triton.server
    client.close()


def test_a_dead_stub_is_seen_behind_a_good_readiness_and_healed(triton: Running) -> None:
    """Triton's own readiness stays 200; the canary sees it; unload and load make a new stub."""
    before = triton.metric("model_triton_heals_total")
    server = triton.server
    for stub in triton.processes("triton_python"):
        os.kill(stub, signal.SIGKILL)

    assert 200 == _get(triton.http_port, "/v2/health/ready")[0]
    assert triton.answer() is not None
    triton.until(lambda: triton.metric("model_triton_heals_total") > before)
    triton.until(triton.well)
    assert server == triton.server


def test_a_model_that_was_taken_out_is_told_and_left_out_until_it_is_put_back(triton: Running) -> None:
    """The server lives; calls say why; nobody heals what somebody may have meant."""
    heals = triton.metric("model_triton_heals_total")
    url = f"http://127.0.0.1:{triton.http_port}/v2/repository/models/{MODEL}"
    for verb, state in (("unload", "unloaded"), ("load", "ok")):
        request = urllib.request.Request(f"{url}/{verb}", data=b"{}", method="POST")  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=20):  # noqa: S310 - loopback
            pass
        triton.until(partial(triton.canary_is, state))
        assert verb == "load" or triton.answer() in {"unloaded", "breaker_open"}

    triton.until(triton.well)
    assert heals == triton.metric("model_triton_heals_total")


def test_a_killed_server_is_started_again_and_leaves_nothing(triton: Running) -> None:
    """SIGKILL under load: each call has an answer, stubs and regions of the dead one are gone."""
    restarts, old = triton.metric("model_triton_restarts_total"), triton.server
    stubs = triton.processes("triton_python")
    os.kill(old, signal.SIGKILL)
    answers = [triton.answer() for _ in range(50)]

    assert {"refused", "breaker_open"} & {str(answer) for answer in answers}
    triton.until(triton.well)
    assert restarts + 1 == triton.metric("model_triton_restarts_total")
    assert not any(_runs(pid) for pid in stubs)
    # one region for each stub of the new server
    assert 2 == len(list(SHM.glob(f"inferdeck-triton-{triton.process.pid}-*")))


def test_a_stub_that_executes_while_its_server_dies_is_ended(triton: Running) -> None:
    """Such an orphan lives on and is deaf to TERM: here one that stands still, whose server is killed."""
    (stub, *_others) = triton.processes("triton_python")
    os.kill(stub, signal.SIGSTOP)
    os.kill(triton.server, signal.SIGKILL)

    triton.until(lambda: not _runs(stub))
    triton.until(lambda: triton.metric("model_triton_orphans_total") >= 1.0)
    triton.until(triton.well)


def test_a_server_that_hangs_costs_a_timeout_and_then_nothing_until_it_is_killed(triton: Running) -> None:
    """Open socket, no answer: the breaker opens, the supervisor kills it after its time, and all comes back."""
    restarts, server = triton.metric("model_triton_restarts_total"), triton.server
    triton.backend._timeout = 0.3  # a test's patience
    os.kill(server, signal.SIGSTOP)
    answers = [triton.answer() for _ in range(4)]

    assert ["timeout"] * 3 + ["breaker_open"] == answers
    triton.until(lambda: triton.metric("model_triton_restarts_total") > restarts)
    triton.backend._timeout = 2.0
    triton.until(triton.well)
    assert server != triton.server


def test_clients_that_leave_do_it_no_harm(triton: Running) -> None:
    """Timeouts race completions two hundred times over HTTP; over gRPC that killed it."""
    server = triton.server
    client = TritonHttp("127.0.0.1", triton.http_port, MODEL, 4)
    ids, mask = pad([triton.local.encode(TEXT).ids])
    outcomes: dict[str, int] = {}
    for number in range(200):
        # around the queue's delay of 10 ms, so that some are answered and some are not
        try:
            client.infer(ids, mask, version="2", seconds=0.008 + 0.00004 * number)
            name = "fine"
        except TritonError as error:
            name = error.reason
        outcomes[name] = outcomes.get(name, 0) + 1
    client.close()

    assert {"timeout"} <= set(outcomes) <= {"fine", "timeout"}
    assert server == triton.server
    triton.until(triton.well)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
