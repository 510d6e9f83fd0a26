from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.exporters.gpu.scenarios import H200


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def values(port: int, deadline_seconds: float = 20.0, wanted: str = "gpu_exporter_up 1.0") -> dict[str, float]:
    """Samples by name (the last one of each) once *wanted* is among the lines."""
    until = time.monotonic() + deadline_seconds
    text = ""
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except urllib.error.URLError:
            text = ""
        if wanted in text:
            return {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}
        time.sleep(0.1)
    raise AssertionError(f"{wanted} was not shown: {text}")


@pytest.mark.real
def test_the_exporter_of_cards_alone_shows_them_and_their_loss(
    stub_environment: dict[str, str], tmp_path: Path
) -> None:
    """As a process: figures while the card works, an `_up` of 0 and no figures once the driver is gone, and back."""
    scenario, port = tmp_path / "scenario", free_port()
    scenario.write_text(H200, encoding="utf-8")
    environment = {
        **stub_environment,
        "STUB_NVML_SCENARIO": str(scenario),
        "INFERDECK_GPU_PORT": str(port),
        "INFERDECK_GPU_INTERVAL_SECONDS": "0.2",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "exporters.gpu"], env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert 44.0 == values(port)["gpu_temperature_celsius"]
            scenario.unlink()
            gone = values(port, wanted="gpu_exporter_up 0.0")
            assert 0.0 == gone["gpu_card_up"]
            assert "gpu_temperature_celsius" not in gone
            assert "gpu_memory_used_bytes" not in gone
            scenario.write_text(H200, encoding="utf-8")
            assert 44.0 == values(port)["gpu_temperature_celsius"]
        finally:
            process.terminate()
        assert 0 == process.wait(10)


@pytest.mark.real
def test_a_taken_port_is_told_in_a_line() -> None:
    """The process ends with 2 and says which variable mends it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment = {**os.environ, "INFERDECK_GPU_PORT": str(taken.getsockname()[1])}
        done = subprocess.run(
            [sys.executable, "-m", "exporters.gpu"], env=environment, capture_output=True, text=True, check=False
        )

    assert 2 == done.returncode
    assert "set INFERDECK_GPU_PORT" in done.stderr
