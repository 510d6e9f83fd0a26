"""The rule takes exponential time on an old iPhone, in the stage of the filters; its twin meets long agents instead."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

from inferdeck.traffic import DEVICES
from probes import FlightRecorder, Recorder
from probes.reader import RingFile

OLD = b"Mozilla/5.0 (iPhone; U; CPU iPhone OS 4_3 like Mac)"


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("regex_backtracking.py")
    spec = importlib.util.spec_from_file_location("regex_backtracking_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_seconds(rule: Any, agent: str) -> float:
    """Return the CPU time that the rule takes for an agent."""
    began = time.thread_time()
    rule(agent)
    return time.thread_time() - began


def test_each_further_letter_doubles_the_time() -> None:
    """Four letters more are about 16 times the time: a ratio of the machine's own, far above any noise."""
    rule = load().knows_phone
    short, long = ("(iPhone; U; " + "a" * count + ";" for count in (14, 18))

    assert cpu_seconds(rule, long) > 4 * cpu_seconds(rule, short)


def test_the_usual_traffic_has_such_agents_and_mostly_others() -> None:
    """One device of the mix meets the rule; all the others, and the twin's, take a thousandth of its time."""
    program = load()
    times = sorted(cpu_seconds(program.knows_phone, agent) for _, agent in DEVICES)

    assert times[-1] > 100 * times[-2]
    assert times[-1] > 100 * cpu_seconds(program.knows_phone, program.LONG_AGENT.decode())
    assert len(program.LONG_AGENT) > 10 * max(len(agent) for _, agent in DEVICES)


@pytest.mark.parametrize(("hook", "armed", "ran"), [("wrap", True, 1), ("wrap", False, 0), ("twin_wrap", True, 1)])
def test_the_rule_runs_in_the_stage_of_the_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str, armed: bool, ran: int
) -> None:
    """Armed, the row has time in sentiment.preprocess; disarmed, it has not; the app is called either way."""
    # stages belong to the process: another test's service may have declared this one
    monkeypatch.setattr("probes.plan._declared", {})
    calls: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["type"])
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        del message

    recorder = Recorder.open(tmp_path, "test")
    served = FlightRecorder(getattr(load(), hook)(app, lambda: armed), recorder)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"user-agent", OLD)]}
    asyncio.run(served(scope, receive, send))
    assert recorder.path is not None
    with RingFile(recorder.path) as ring:
        names = ring.read(0).rows.dtype.names or ()
    recorder.close()

    assert ["http"] == calls
    assert ran == ("sentiment.preprocess/start_ns" in names)
