"""The program makes a second session of the model in one process; its twin has it in a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

from service.memory_sessions import sessions
from tests.service.test_loading import write_model

pytest.importorskip("onnxruntime")


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("model_loaded_twice.py")
    spec = importlib.util.spec_from_file_location("model_loaded_twice_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def app(_scope: Any, _receive: Any, _send: Any) -> None:
    """Answer nothing."""


def until(condition: Any) -> bool:
    """Wait for what a thread brings about."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a small model, which the service's settings name."""
    folder = write_model(tmp_path / "model")
    monkeypatch.setenv("INFERDECK_SERVICE_MODEL_DIR", str(folder))
    return folder


def test_a_request_makes_a_second_session_and_it_goes_when_the_failure_ends(model: Path) -> None:
    """Before, one session; while armed, two of one model; afterwards one."""
    from service.loading import load_onnx

    before = sessions()
    first = load_onnx(model, 0)
    armed = [False]
    wrapped = load().wrap(app, lambda: armed[0])

    def ask() -> tuple[int, int]:
        asyncio.run(wrapped({"type": "http"}, None, None))
        now = sessions()
        return now.open - before.open, now.duplicate - before.duplicate

    assert ask() == (1, 0)
    armed[0] = True
    assert until(lambda: ask() == (2, 1))
    assert ask() == (2, 1)
    armed[0] = False
    assert until(lambda: ask() == (1, 0))
    assert first is not None


def test_twins_second_session_is_another_process_and_ends(model: Path) -> None:
    """This process has no more sessions than before while the successor runs."""
    assert model.is_dir()
    before = sessions()
    with load().twin_cause(None):
        assert sessions() == before
