"""The program renders a readiness delay under a real warm-up, which doctor names; its twin is the shipped manifest."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from inferdeck.http_get import get
from inferdeck.manifests.judge import judge
from inferdeck.manifests.rollout import Measured


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("rollout_cuts_off.py")
    spec = importlib.util.spec_from_file_location("rollout_cuts_off_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class RecordingStack:
    """Notes how the service is restarted and what the cluster showed."""

    service_url = admin_url = "http://127.0.0.1:9"

    def __init__(self) -> None:
        self.waits: list[bool] = []
        self.address = ""

    def restart_service(self, *, wait: bool = True) -> None:
        """Note it."""
        self.waits.append(wait)

    @contextmanager
    def scrape_cluster(self, address: str) -> Iterator[None]:
        """Scrape it twice, as Prometheus does before anything changes."""
        for _ in range(2):
            assert b'observed_generation{deployment="sentiment"' in get(f"http://{address}/metrics")[1]
        self.address = address
        yield


def test_doctor_names_the_wrong_objects_and_nothing_of_the_right_ones() -> None:
    """By the warm-up that the program causes, which its delay is under."""
    program = load()
    warm = Measured(program.WARM_UP_SECONDS, 1.0, "rows")

    wrong = [one for one in judge([program.wrong()], program.NODES, warm) if one.state == "fail"]
    right = [one for one in judge([program.right()], program.NODES, warm) if one.state == "fail"]

    assert {program.SLUG} == {one.name.partition(":")[0] for one in wrong}
    assert wrong[0].detail.startswith("readiness delay of 5 s under the measured warm-up of 50.0 s (rows)")
    assert [] == right


@pytest.mark.parametrize(("hook", "waits"), [("cause", False), ("twin_cause", True)])
def test_each_replaces_the_service_once_and_rolls_out(hook: str, waits: bool) -> None:
    """The failure is watched while the model warms up; the twin is over when it is ready."""
    stack = RecordingStack()

    with getattr(load(), hook)(stack):
        text = get(f"http://{stack.address}/metrics")[1].decode()

    assert [waits] == stack.waits
    assert 'observed_generation{deployment="sentiment",namespace="inferdeck"} 2.0' in text


@pytest.mark.parametrize("armed", [True, False])
def test_only_a_process_that_starts_armed_warms_up_long(armed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app stays the same; making a session is what changes."""
    program = load()
    monkeypatch.setattr(onnxruntime, "InferenceSession", make := object())
    app = object()

    assert program.wrap(app, lambda: armed) is app
    assert armed == (onnxruntime.InferenceSession is not make)
