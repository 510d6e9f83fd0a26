"""Doctor tells before the start that a GPU was asked for and will not be had."""

from __future__ import annotations

import onnxruntime
import pytest

from inferdeck.doctor_device import model_device
from service.device import CPU, CUDA

NAME = "INFERDECK_SERVICE_MODEL_DEVICE"


@pytest.mark.parametrize(
    ("wanted", "available", "got", "state"),
    [
        ("cpu", [CPU], [CPU], "ok"),
        ("cuda", [CUDA, CPU], [CUDA, CPU], "ok"),
        ("cuda", [CUDA, CPU], [CPU], "fail"),
        ("cuda", [CPU], [CPU], "fail"),
        ("cuda_or_cpu", [CUDA, CPU], [CPU], "warn"),
    ],
)
def test_what_was_asked_for_is_held_against_what_there_is(
    monkeypatch: pytest.MonkeyPatch, wanted: str, available: list[str], got: list[str], state: str
) -> None:
    """A fallback that is allowed is told, one that is not fails; either with its mend."""
    monkeypatch.setenv(NAME, wanted)
    (found,) = model_device(lambda: available, lambda _available: got)

    assert state == found.state
    assert (state == "ok") == (not found.mend)


def test_a_real_session_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ONNX Runtime of this machine, which has no CUDA, or has it."""
    monkeypatch.setenv(NAME, "cuda_or_cpu")
    (found,) = model_device()

    if CUDA not in onnxruntime.get_available_providers():
        assert "warn" == found.state
        assert found.detail.startswith("asked for CUDA, got CPUExecutionProvider")
