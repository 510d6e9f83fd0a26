"""Signs of a service that is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runbooks.evidence import Evidence, Window
from runbooks.signals import QUERIES
from runbooks.steps import liveness


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def test_a_killed_service_shows_in_every_step(world: Callable[..., Any]) -> None:
    """Target down, workers silent, nothing ends, requests lost, while the exporter answers."""
    known = evidence(world(dead_after=0.5, during=40.0, rate=2000.0, before=30.0))

    assert liveness.service_target_down(known).value == pytest.approx(40.0, abs=5.0)
    assert liveness.silent_workers(known).value == pytest.approx(39.5, abs=0.5)
    assert 0.0 == liveness.requests_stopped(known).value
    assert float(liveness.unfinished_requests(known).value or 0) > 0
    assert "in model.forward" in liveness.unfinished_requests(known).detail
    assert liveness.exporter_answers(known).value is True


def test_a_living_service_shows_in_none(world: Callable[..., Any]) -> None:
    """Nothing is down, silent, stopped or lost; requests in flight are not lost ones."""
    known = evidence(world())

    assert 0.0 == liveness.service_target_down(known).value
    assert 0.0 == liveness.silent_workers(known).value
    assert 0.0 == liveness.unfinished_requests(known).value
    assert float(liveness.requests_stopped(known).value or 0) > 0.5


def test_a_frozen_process_is_told_from_a_dead_one(world: Callable[..., Any]) -> None:
    """Silent but still holding its file: it was stopped, not killed."""
    frozen = liveness.silent_workers(evidence(world(dead_after=0.0, frozen=True)))
    killed = liveness.silent_workers(evidence(world(dead_after=0.0)))

    assert "still holds its file" in frozen.detail
    assert "has let go of its file" in killed.detail


def test_one_living_worker_keeps_the_service_alive(world: Callable[..., Any]) -> None:
    """The newest sign of life of any worker counts."""
    assert 0.0 == liveness.silent_workers(evidence(world(dead_after=0.0, workers=4, dead_workers=1))).value


def test_an_old_folder_is_no_sign_of_a_fresh_death(world: Callable[..., Any]) -> None:
    """Workers that were silent all along may be last week's."""
    known = evidence(world(dead_after=0.0))
    later = replace(known, window=Window(known.window.until + 3600.0, known.window.until + 4500.0))

    assert liveness.silent_workers(later).value is None


def test_little_traffic_or_no_past_says_nothing_about_stopping(world: Callable[..., Any]) -> None:
    """An idle service stops all the time."""
    assert liveness.requests_stopped(evidence(world(rate=0.2))).value is None
    assert liveness.requests_stopped(evidence(world(before=5.0))).value is None


@pytest.mark.parametrize("name", liveness.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(liveness, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"liveness.{name}" == found.step
