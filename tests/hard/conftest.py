"""The real service process with a small real model, watched by a real exporter, for those who mean it no good."""

from __future__ import annotations

import contextlib
import json
import os
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

from service.training.command import Floors, train
from service.training.corpus import Row, load_corpus

ROOT = Path(__file__).resolve().parents[2]
GOOD = {"text": "很好 good", "product_id": "AB12345678"}
BODY = json.dumps(GOOD).encode()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Service:
    """A service process and its folders."""

    process: subprocess.Popen[bytes]
    port: int
    admin_port: int
    ring_dir: Path
    log: Path

    @property
    def url(self) -> str:
        """Address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, timeout: float = 10.0, **headers: str) -> httpx.Response:
        """Send one good review on a connection of its own."""
        return httpx.post(f"{self.url}/v1/sentiment", json=GOOD, headers=headers, timeout=timeout)

    def resident_bytes(self) -> int:
        """Return the memory that the process holds."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE")

    def descriptors(self) -> int:
        """Return how many descriptors the process has open."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def until(self, what: Callable[[], Any], seconds: float = 30.0) -> None:
        """Wait until it is true; a transport error means not yet."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(httpx.TransportError):
                if what():
                    return
            time.sleep(0.05)
        pytest.fail(f"waited {seconds:g} s in vain; the log:\n{self.log.read_text()}")


Launch = Callable[..., contextlib.AbstractContextManager[Service]]


@contextlib.contextmanager
def launched(folder: Path, model: Path, **settings: Any) -> Iterator[Service]:
    """Run a service until the block ends; stopped by its pid."""
    told: dict[str, Any] = {
        "port": free_port(),
        "admin_port": free_port(),
        "model_dir": model,
        "memory_reserve_bytes": 0,
    } | settings
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INFERDECK_")}
    environment |= {f"INFERDECK_SERVICE_{name.upper()}": str(value) for name, value in told.items()}
    environment["INFERDECK_RING_DIR"] = str(folder / "rings")
    log = folder / f"service-{told['port']}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen([sys.executable, "-m", "service"], cwd=ROOT, env=environment, stderr=stream)
    service = Service(process, told["port"], told["admin_port"], folder / "rings", log)
    try:
        ready = f"http://127.0.0.1:{service.admin_port}/healthz/ready"
        service.until(lambda: httpx.get(ready, timeout=5).status_code == 200)
        yield service
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small real model."""
    words = {0: "很差 bad", 1: "一般 average", 2: "很好 good"}
    rows = [
        Row(f"{words[label]} {number}", label, "zh" if number % 2 else "en") for label in words for number in range(60)
    ]
    folder = tmp_path_factory.mktemp("model") / "model"
    nothing = Floors(macro_f1=0.0, chinese_accuracy=0.0, logit_difference=1.0)
    train(folder, progress=lambda *_: None, corpus=load_corpus(rows), floors=nothing)
    return folder


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Iterator[Service]:
    """Run one service for the tests of a module; none of them may leave a traceback or a user's text in its log."""
    with launched(tmp_path_factory.mktemp("service"), model) as running:
        yield running
        log = running.log.read_text()
    assert "Traceback" not in log
    assert GOOD["text"] not in log


@pytest.fixture
def launch(tmp_path: Path, model: Path) -> Launch:
    """Return what starts a service of this test alone."""
    return lambda **settings: launched(tmp_path, model, **settings)
