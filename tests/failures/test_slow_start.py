"""The program makes a restart slow, and only a restart while it is armed; its twin is a restart alone."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import onnxruntime
import pytest


class RecordingStack:
    """Notes how the service is restarted."""

    def __init__(self) -> None:
        self.waits: list[bool] = []

    def restart_service(self, *, wait: bool = True) -> None:
        """Note it."""
        self.waits.append(wait)


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("slow_start.py")
    spec = importlib.util.spec_from_file_location("slow_start_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("hook", "waits"), [("cause", False), ("twin_cause", True)])
def test_each_restarts_the_service_once(hook: str, waits: bool) -> None:
    """The failure is watched while it lasts; the twin is over when the service is ready."""
    stack = RecordingStack()

    with getattr(load(), hook)(stack):
        assert [waits] == stack.waits

    assert [waits] == stack.waits


@pytest.mark.parametrize("armed", [True, False])
def test_only_a_process_that_starts_armed_is_slow(armed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app stays the same; making a session is what changes."""
    program = load()
    monkeypatch.setattr(onnxruntime, "InferenceSession", make := object())
    app = object()

    assert program.wrap(app, lambda: armed) is app
    assert armed == (onnxruntime.InferenceSession is not make)


def test_the_session_is_made_after_the_wait() -> None:
    """Late and whole: what it is made of is handed on."""
    began = time.perf_counter()
    made = load().slowly_made(lambda *args, **options: (args, options), 0.05)("graph", threads=1)

    assert (("graph",), {"threads": 1}) == made
    assert time.perf_counter() - began >= 0.05
