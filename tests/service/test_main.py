"""The real process: `python -m service` over sockets, with a small real model, and clients that misbehave."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = json.dumps({"text": "很好 good", "product_id": "AB12345678"}).encode()
HEAD = b"POST /v1/sentiment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Running:
    """A service process and where it listens."""

    process: subprocess.Popen[bytes]
    port: int
    admin_port: int
    log: Path

    @property
    def url(self) -> str:
        """Address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def ready(self) -> httpx.Response:
        """Return readiness as the admin port tells it."""
        return httpx.get(f"http://127.0.0.1:{self.admin_port}/healthz/ready", timeout=5)

    def wait_ready(self) -> None:
        """Wait until the service is ready."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(httpx.TransportError):
                if self.ready().status_code == 200:
                    return
            time.sleep(0.05)
        pytest.fail(self.log.read_text())

    def exchange(self, *parts: bytes, pause: float = 0.0, wait: float = 10.0) -> bytes:
        """Send parts over a raw connection, and return what comes until it is closed or the time is over."""
        received = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as wire:
            try:
                for part in parts:
                    wire.sendall(part)
                    time.sleep(pause)
                while chunk := wire.recv(65536):
                    received += chunk
            except (TimeoutError, ConnectionError):
                return received
        return received


Launch = Callable[..., contextlib.AbstractContextManager[Running]]


def launcher(folder: Path, model: Path) -> Launch:
    """Return what starts a service that lives in a folder, and ends it by its pid."""

    @contextlib.contextmanager
    def launch(**settings: Any) -> Iterator[Running]:
        port, admin_port = free_port(), free_port()
        told: dict[str, Any] = {
            "port": port,
            "admin_port": admin_port,
            "model_dir": model,
            "memory_reserve_bytes": 0,
        } | settings
        environment = {name: value for name, value in os.environ.items() if not name.startswith("INFERDECK_")}
        environment |= {f"INFERDECK_SERVICE_{name.upper()}": str(value) for name, value in told.items()}
        environment["INFERDECK_RING_DIR"] = str(folder / "rings")
        log = folder / f"service-{port}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen([sys.executable, "-m", "service"], cwd=ROOT, env=environment, stderr=stream)
        try:
            yield Running(process, int(told["port"]), int(told["admin_port"]), log)
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)

    return launch


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small real model."""
    from service.training.command import Floors, train
    from service.training.corpus import Row, load_corpus

    words = {0: "很差 bad", 1: "一般 average", 2: "很好 good"}
    rows = [
        Row(f"{words[label]} {number}", label, "zh" if number % 2 else "en") for label in words for number in range(60)
    ]
    folder = tmp_path_factory.mktemp("model") / "model"
    nothing = Floors(macro_f1=0.0, chinese_accuracy=0.0, logit_difference=1.0)
    train(folder, progress=lambda *_: None, corpus=load_corpus(rows), floors=nothing)
    return folder


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Iterator[Running]:
    """Return one service that the module's tests share."""
    with launcher(tmp_path_factory.mktemp("shared"), model)(receive_timeout_seconds=0.5) as own:
        own.wait_ready()
        yield own


@pytest.fixture
def launch(tmp_path: Path, model: Path) -> Launch:
    """Return what starts a service of this test alone."""
    return launcher(tmp_path, model)


def status(answer: bytes) -> int:
    """Return the status of a raw answer."""
    return int(answer.split(b" ", 2)[1])


def test_answers_over_a_socket(running: Running, judge: Any) -> None:
    """A review goes in, a judgement comes out."""
    response = httpx.post(f"{running.url}/v1/sentiment", content=GOOD, headers={"content-type": "application/json"})
    assert response.status_code == 200
    judge.answer(response)


def test_chunked_body_over_the_limit_is_413(running: Running) -> None:
    """Without a Content-Length the bytes are counted, and the client gets to read the answer."""
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    answer = running.exchange(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 6, b"0\r\n\r\n")
    assert status(answer) == 413
    assert b"body_too_large" in answer


def test_chunked_body_in_many_small_parts_is_read(running: Running) -> None:
    """How a body is cut does not matter."""
    parts = [b"%x\r\n%s\r\n" % (1, bytes([byte])) for byte in GOOD]
    answer = running.exchange(
        HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n", b"".join(parts), b"0\r\n\r\n"
    )
    assert status(answer) == 200


def test_body_that_stalls_is_408_and_closed(running: Running) -> None:
    """A slow client is told, and its connection is given back."""
    answer = running.exchange(HEAD + b"Content-Length: 100\r\n\r\n", b"{")
    assert status(answer) == 408


def test_rest_after_a_body_is_no_part_of_it(running: Running) -> None:
    """Bytes beyond Content-Length are HTTP again, and nonsense there ends the connection."""
    answer = running.exchange(HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD), GOOD, b"rubbish\r\n\r\n", pause=0.2)
    assert status(answer) == 200
    assert b"HTTP/1.1 400" in answer


def test_client_that_asks_first_is_refused_before_it_sends(running: Running) -> None:
    """Expect: 100-continue with a length over the limit gets 413 instead of go on."""
    answer = running.exchange(HEAD + b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n")
    assert status(answer) == 413


def test_head_without_end_is_cut_off(running: Running) -> None:
    """Without a bound the server would keep all of it in memory; what fits is told 431, what goes on is reset."""
    answer = running.exchange(HEAD + b"X-Long: " + b"y" * 60_000, b"y" * 6_000, pause=0.2)
    assert status(answer) == 431
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as wire:
        wire.sendall(HEAD + b"X-Long: ")
        with pytest.raises(ConnectionError):
            wire.sendall(b"y" * 16_384_000)  # more than the system's buffers take


def test_long_headers_within_the_bound_do_not_matter(running: Running) -> None:
    """30 kB of session id and repeated headers are taken, and judged by their first."""
    extra = b"X-Session-Id: " + b"s" * 30_000 + b"\r\n" + b"X-Device-Type: toaster\r\n" * 50
    answer = running.exchange(HEAD + extra + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(GOOD), GOOD)
    assert status(answer) == 200


NOT_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "nonsense": b"NONSENSE\r\n\r\n",
    "version": b"POST /v1/sentiment HTTP/9.9\r\n\r\n",
    "negative length": HEAD + b"Content-Length: -5\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "length and chunks": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "bad header": HEAD + b"X-Bad\x00: 1\r\n\r\n",
}


@pytest.mark.parametrize("raw", NOT_HTTP.values(), ids=NOT_HTTP.keys())
def test_what_is_not_http_is_refused_and_nothing_breaks(running: Running, raw: bytes) -> None:
    """A broken client gets 400 or a closed connection, and the next one its answer."""
    answer = running.exchange(raw, wait=2)
    assert answer == b"" or 400 <= status(answer) < 500
    assert httpx.get(f"{running.url}/openapi.yaml").status_code == 200


@pytest.mark.parametrize("method", ["HEAD", "PUT", "OPTIONS", "TRACE"])
def test_other_methods_are_405(running: Running, method: str) -> None:
    """Over a socket as well, and HEAD without a body."""
    response = httpx.request(method, f"{running.url}/v1/sentiment")
    assert response.status_code == 405
    assert (response.content == b"") == (method == "HEAD")


def test_websocket_is_not_there(running: Running) -> None:
    """An upgrade is no way around the contract."""
    answer = running.exchange(
        b"GET /v1/sentiment HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert 400 <= status(answer) < 500


def test_nothing_of_all_that_was_a_500_and_the_log_has_no_text(running: Running) -> None:
    """The log of the shared process has no traceback and nothing of a request."""
    log = running.log.read_text()
    assert "Traceback" not in log
    assert "很好" not in log
    assert running.ready().status_code == 200


def test_a_heavy_import_is_late_and_not_dead(launch: Launch, tmp_path: Path) -> None:
    """The admin port says that it is warming up while a middleware is imported, and the service gets ready after it."""
    gate = tmp_path / "gate"
    (tmp_path / "heavy.py").write_text(
        f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists():\n    time.sleep(0.01)\n"
        "def wrap(app):\n    return app\n"
    )
    with launch(middleware=f"{tmp_path}/heavy.py:wrap") as running:
        until = time.monotonic() + 30
        answer = None
        while answer is None and time.monotonic() < until:
            with contextlib.suppress(httpx.TransportError):
                answer = running.ready()
            time.sleep(0.05)
        gate.touch()
        running.wait_ready()

    assert answer is not None, running.log.read_text()
    assert (503, "starting") == (answer.status_code, answer.json()["phase"])


def test_stops_cleanly_on_a_signal(launch: Launch) -> None:
    """SIGTERM ends it with 0."""
    with launch() as own:
        own.wait_ready()
        own.process.send_signal(signal.SIGTERM)
        assert own.process.wait(20) == 0


def test_workers_share_both_ports(launch: Launch) -> None:
    """Two workers answer on one admin port, each with the model, and stop together."""
    with launch(workers=2) as own:
        own.wait_ready()
        until = time.monotonic() + 30
        pids: set[int] = set()
        while len(pids) < 2 and time.monotonic() < until:
            with contextlib.suppress(httpx.TransportError):
                answer = own.ready()
                if answer.status_code == 200:
                    pids.add(answer.json()["pid"])
            time.sleep(0.02)
        assert len(pids) == 2
        response = httpx.post(f"{own.url}/v1/sentiment", content=GOOD, headers={"content-type": "application/json"})
        assert response.status_code == 200
        own.process.terminate()
        assert own.process.wait(20) == 0


def test_missing_model_keeps_it_up_and_training_mends_it(launch: Launch, model: Path, tmp_path: Path) -> None:
    """No model is not ready with the mend; once it is there, the service finds it without a restart."""
    place = tmp_path / "later"
    with launch(model_dir=place, model_retry_seconds=0.1) as own:
        until = time.monotonic() + 30
        told: dict[str, Any] = {}
        while told.get("phase") != "model_missing" and time.monotonic() < until:
            with contextlib.suppress(httpx.TransportError):
                told = own.ready().json()
            time.sleep(0.05)
        response = httpx.post(f"{own.url}/v1/sentiment", content=GOOD, headers={"content-type": "application/json"})
        place.symlink_to(model)
        own.wait_ready()
    assert (told["status"], told["mend"]) == ("not_ready", "inferdeck train")
    assert response.status_code == 503


@pytest.mark.parametrize("which", ["port", "admin_port"])
def test_taken_port_is_one_line_and_exit_2(launch: Launch, which: str) -> None:
    """The line names the address and the setting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with launch(**{which: taken.getsockname()[1]}) as own:
            assert own.process.wait(20) == 2
        log = own.log.read_text()
    assert log.count("\n") == 1
    assert f"INFERDECK_SERVICE_{which.upper()}" in log


def test_setting_that_makes_no_sense_is_one_line_and_exit_2(launch: Launch) -> None:
    """Nothing starts half."""
    with launch(workers=0) as own:
        assert own.process.wait(20) == 2
    assert own.log.read_text().startswith("service: INFERDECK_SERVICE_WORKERS: ")


def test_client_that_leaves_while_it_waits_for_its_batch_is_noticed(launch: Launch, tmp_path: Path) -> None:
    """Long before its batch would have gone; half a minute's worth of such clients does not fill the queue."""
    from probes.reader import RingFile, list_rings

    waiting = {"scheduler_batching": "true", "batch_wait_seconds": 30, "deadline_seconds": 60, "queue_places": 2}
    with launch(**waiting) as own:
        own.wait_ready()
        for _ in range(5):
            own.exchange(HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD), GOOD, wait=0.3)
        (path,) = list_rings(tmp_path / "rings")
        until = time.monotonic() + 10
        while RingFile(path).head() < 5 and time.monotonic() < until:
            time.sleep(0.05)
        rows = RingFile(path).read(0, 10).rows
    assert rows["outcome"].tolist() == [4] * 5
    assert max(rows["duration_ns"]) < 10e9
    assert set(rows["model.forward/start_ns"].tolist()) == {2**64 - 1}
