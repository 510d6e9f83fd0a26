"""The program kills the service, its twin restarts the exporter, and neither does more."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


class RecordingStack:
    """Notes what a program does to the stack."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def kill_service(self) -> None:
        """Note it."""
        self.done.append("kill_service")

    def restart_exporter(self) -> None:
        """Note it."""
        self.done.append("restart_exporter")


@pytest.mark.parametrize(("hook", "expected"), [("cause", ["kill_service"]), ("twin_cause", ["restart_exporter"])])
def test_the_program_does_one_thing(hook: str, expected: list[str]) -> None:
    """Entering causes; leaving undoes nothing."""
    path = Path(__file__).with_name("service_down.py")
    spec = importlib.util.spec_from_file_location("service_down_program", path)
    assert spec is not None
    assert spec.loader is not None
    program: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    stack = RecordingStack()

    with getattr(program, hook)(stack):
        assert expected == stack.done

    assert expected == stack.done
