"""The program's label outgrows what the recorder takes for one label; its twin's label stays within it."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from probes import FlightRecorder, Recorder
from probes.strings import FIELD_BUDGET


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("series_explosion.py")
    spec = importlib.util.spec_from_file_location("series_explosion_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("hook", "armed", "refused"), [("wrap", True, 44), ("wrap", False, 0), ("twin_wrap", True, 0)])
def test_only_the_armed_label_is_refused(tmp_path: Path, hook: str, armed: bool, refused: int) -> None:
    """Of 300 requests with fresh ids 256 fit, 44 are refused and counted; every request is answered."""
    answered: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        answered.append(1)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        del message

    recorder = Recorder.open(tmp_path, "test")
    served = FlightRecorder(getattr(load(), hook)(app, lambda: armed), recorder)

    async def scenario() -> None:
        for _ in range(FIELD_BUDGET + 44):
            await served({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)

    asyncio.run(scenario())
    counted = recorder.status()["probe_failures"].get("string_budget", 0)
    recorder.close()

    assert FIELD_BUDGET + 44 == len(answered)
    assert refused == counted
