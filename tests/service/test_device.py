"""A GPU build that fell back to the CPU is caught at the start, by the providers that the session really has."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import onnxruntime
import pytest

from service.device import CPU, CUDA, Device, Wanted, WrongDevice, judge, providers
from service.health import readiness
from service.lifecycle import Lifecycle, State
from service.loading import load_onnx
from service.service_metrics import Snapshot, render
from tests.service.test_loading import write_model


@pytest.mark.parametrize(
    ("wanted", "available", "expected"),
    [
        ("cpu", [CUDA, CPU], [CPU]),
        ("cuda", [CPU], [CPU]),
        ("cuda", [CUDA, CPU], [CUDA, CPU]),
        ("cuda_or_cpu", ["TensorrtExecutionProvider", CUDA, CPU], [CUDA, CPU]),
    ],
)
def test_only_what_is_there_is_asked_for(wanted: Wanted, available: list[str], expected: list[str]) -> None:
    """ONNX Runtime warns of others, which would hide the reason."""
    assert expected == providers(wanted, available)


def test_the_sessions_providers_decide() -> None:
    """Not those that were asked for: one that is built in may not have started."""
    assert Device("gpu") == judge("cuda", [CUDA, CPU], [CUDA, CPU])
    assert Device("cpu") == judge("cpu", [CUDA, CPU], [CPU])
    fell = judge("cuda_or_cpu", [CUDA, CPU], [CPU])
    assert "cpu" == fell.type
    assert fell.warning.startswith(f"asked for CUDA, got {CPU}: its {CUDA} did not start")


@pytest.mark.parametrize(
    ("available", "word"), [([CPU], "install onnxruntime-gpu"), ([CUDA, CPU], "did not start: a library of CUDA")]
)
def test_a_model_that_shall_have_a_gpu_does_not_start_without(available: list[str], word: str) -> None:
    """And the line says whether the build or the machine lacks it."""
    with pytest.raises(WrongDevice, match=word):
        judge("cuda", available, [CPU])


def test_this_machines_runtime_falls_back_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the real ONNX Runtime, which has no CUDA here: log, readiness and metric tell it; `cuda` refuses."""
    if CUDA in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has CUDA")
    folder = write_model(tmp_path / "m")
    with caplog.at_level(logging.ERROR, "service.loading"):
        backend, _ = load_onnx(folder, 0, "cuda_or_cpu")
    assert "asked for CUDA, got CPUExecutionProvider" in caplog.text
    assert ("cpu", "") == (backend.device_type, load_onnx(folder, 0)[0].device_warning)

    life = Lifecycle(lambda: backend, 60.0, lambda _phase: None)
    life.start()
    try:
        until = time.monotonic() + 60
        while not life.state.ready:
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        life.stop()
    status, document = readiness(life.state, 7)
    assert (200, backend.device_warning) == (status, document["warning"])
    shown = render(Snapshot("1", "c", "m", "f", "ready", {}, fell_back=True)).decode()
    assert "model_device_fallback_state 1.0" in shown
    with pytest.raises(WrongDevice):
        load_onnx(folder, 0, "cuda")


def test_a_service_on_the_device_it_asked_for_has_no_warning() -> None:
    """Readiness is what it was."""
    assert "warning" not in readiness(State("ready"), 7)[1]
    assert "model_device_fallback_state 0.0" in render(Snapshot("1", "c", "m", "f", "ready", {})).decode()
