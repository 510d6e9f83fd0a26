"""The program deploys a slow look-up and takes it back; the twin's burst is read; both send what the contract takes."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inferdeck.drill.program import read_program
from service.plugins import load_middleware
from service.stream.message import read_query
from tests.service.stream._queries import Clock, drain, file_consumer, message

PROGRAM = Path(__file__).with_name("stream_lag.py")


def load() -> Any:
    """Load the program as a module."""
    spec = importlib.util.spec_from_file_location("stream_lag_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Stack:
    """Notes what is deployed."""

    def __init__(self, folder: Path) -> None:
        self.stream_folder = folder
        self.deployed: list[dict[str, str]] = []

    def deploy_stream(self, environment: dict[str, str]) -> None:
        """Note it."""
        self.deployed.append(environment)


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_asks_for_a_stack_with_a_stream_and_has_a_twin() -> None:
    """As read without being run."""
    told = read_program(PROGRAM)

    assert (True, "stream_lag") == (told.stream, told.slug)
    assert {"usual", "cause", "twin_cause"} <= told.hooks


def test_users_ask_as_the_contract_wants_and_no_question_twice(tmp_path: Path) -> None:
    """Else the failure would be dead letters or duplicates."""
    program, stack = load(), Stack(tmp_path)
    with program.usual(stack):
        until(lambda: (tmp_path / "users.jsonl").exists() and (tmp_path / "users.jsonl").read_bytes().count(b"\n") > 25)
    found = (tmp_path / "users.jsonl").read_bytes().splitlines()
    asked = {read_query(message(line), 16384).query.utterance for line in found}

    assert len(found) == len(asked)
    assert 0 == len(found) % (program.MESSAGES_A_SECOND // 5)


def test_the_slow_look_up_is_deployed_and_taken_back(tmp_path: Path) -> None:
    """Also when the drill is broken off."""
    program, stack = load(), Stack(tmp_path)
    with pytest.raises(KeyboardInterrupt), program.cause(stack):
        raise KeyboardInterrupt

    assert [f"{PROGRAM.absolute()}:look_up", ""] == [one["INFERDECK_STREAM_STEPS"] for one in stack.deployed]
    assert program.LOOK_UP_SECONDS * program.MESSAGES_A_SECOND > 1, "it must be slower than what comes"
    assert program.TWIN_LOOK_UP_SECONDS * program.MESSAGES_A_SECOND < 0.5, "its twin must catch up"


def test_the_deployed_step_waits_with_each_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded by the name that is deployed, run by the stream itself; nothing counts as failed."""
    program, stack = load(), Stack(tmp_path / "in")
    (tmp_path / "in").mkdir()
    with program.twin_cause(stack):
        monkeypatch.setenv("STREAM_LAG_LOOK_UP_SECONDS", "0.02")
        burst = tmp_path / "in" / "burst.jsonl"
        assert program.BURST == burst.read_bytes().count(b"\n")
        burst.write_bytes(program.lines(0, 30, Clock().at_s))
        step: Any = load_middleware(stack.deployed[0]["INFERDECK_STREAM_STEPS"])
        consumer = file_consumer(tmp_path, Clock(), steps=[step])
        began = time.monotonic()
        assert 30 == drain(consumer)

    assert time.monotonic() - began >= 30 * 0.02
    assert {"messages:ok": 30} == consumer.view.totals.counts
    consumer.close()
