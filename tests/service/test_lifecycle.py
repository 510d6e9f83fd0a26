"""From nothing to ready, by way of what can go wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from service.artifacts import ArtifactsDamaged, ArtifactsMissing
from service.lifecycle import PHASES, Lifecycle, Phase


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for what the loading thread does."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_phases_follow_each_other_to_ready(make_backend: Any) -> None:
    """The model is warm before anyone is told that it is ready."""
    seen: list[Phase] = []
    backend: Any = make_backend()
    lifecycle = Lifecycle(lambda: backend, 60, seen.append)
    assert (lifecycle.state.phase, lifecycle.backend) == ("starting", None)
    lifecycle.start()
    wait_for(lambda: lifecycle.state.ready)
    lifecycle.stop()
    assert seen == ["loading_model", "warming_up", "ready"]
    assert backend.forwards == 1
    assert lifecycle.backend is backend


@pytest.mark.parametrize(
    ("error", "phase"),
    [
        (ArtifactsMissing("no model in X; run `inferdeck train`"), "model_missing"),
        (ArtifactsDamaged("X is not the file; run `inferdeck train`"), "model_damaged"),
        (MemoryError("12 bytes"), "model_failed"),
    ],
)
def test_failure_is_told_and_mended_without_a_restart(make_backend: Any, error: Exception, phase: Phase) -> None:
    """The folder is looked at again until it holds a model; then it is loaded once and never again."""
    failing = threading.Event()
    failing.set()
    loads: list[int] = []
    seen: list[Phase] = []
    backend = make_backend()

    def load() -> Any:
        loads.append(1)
        if failing.is_set():
            raise error
        return backend

    lifecycle = Lifecycle(load, 0.01, seen.append)
    lifecycle.start()
    wait_for(lambda: len(loads) > 2)
    assert lifecycle.state.failed
    assert lifecycle.state.phase == phase
    assert str(error) in lifecycle.state.detail
    failing.clear()
    wait_for(lambda: lifecycle.state.ready)
    count = len(loads)
    time.sleep(0.05)
    lifecycle.stop()
    assert len(loads) == count
    assert seen[-2:] == ["warming_up", "ready"]
    assert set(seen) <= set(PHASES)


def test_backend_that_cannot_warm_up_is_not_ready(make_backend: Any) -> None:
    """Loading is not enough: one text has to go through."""
    backend = make_backend()
    backend.encode = None
    lifecycle = Lifecycle(lambda: backend, 60, lambda _phase: None)
    lifecycle.start()
    wait_for(lambda: lifecycle.state.failed)
    lifecycle.stop()
    assert lifecycle.backend is None


def test_same_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A log that says the same every few seconds hides the rest."""
    loads: list[int] = []

    def load() -> Any:
        loads.append(1)
        raise ArtifactsMissing("no model in X")

    lifecycle = Lifecycle(load, 0.002, lambda _phase: None)
    lifecycle.start()
    wait_for(lambda: len(loads) > 5)
    lifecycle.stop()
    assert [record.getMessage() for record in caplog.records] == ["model_missing: no model in X"]


def test_stop_before_start_is_no_error() -> None:
    """An app that never started can be stopped."""
    Lifecycle(lambda: pytest.fail("must not load"), 1, lambda _phase: None).stop()
