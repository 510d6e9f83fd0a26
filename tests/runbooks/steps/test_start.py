"""Signs of a start that takes long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runbooks.evidence import Evidence, Window
from runbooks.signals import QUERIES
from runbooks.steps import start


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def values(known: Evidence) -> dict[str, Any]:
    """Return what each step measures."""
    return {name: getattr(start, name)(known).value for name in start.__all__}


def test_a_slow_start_shows_in_every_step(world: Callable[..., Any]) -> None:
    """Its seconds in files and metrics, its phase, and that the process lives."""
    found = values(evidence(world(start_seconds=25.0)))

    assert found["seconds"] == pytest.approx(25.0)
    assert found["counted_seconds"] == pytest.approx(25.0, abs=2.0)
    assert 15.0 <= found["warming_seconds"] <= 25.0
    assert "loading_model" == found["slowest_phase"]
    assert found["process_lives"] is True
    assert found["ratio"] > 10.0


def test_a_start_that_goes_on_is_measured_so_far(world: Callable[..., Any]) -> None:
    """Fifteen of twenty-five seconds."""
    found = start.seconds(evidence(world(start_seconds=25.0, during=15.0)))

    assert found.value == pytest.approx(15.0, abs=0.1)
    assert "not ready" in found.detail


def test_a_quick_start_shows_in_none(world: Callable[..., Any]) -> None:
    """A deploy as ever."""
    found = values(evidence(world(start_seconds=2.0)))

    assert found["seconds"] == pytest.approx(2.0)
    assert found["counted_seconds"] <= 2.1
    assert found["warming_seconds"] <= 5.0
    assert found["ratio"] < 5.0


def test_a_service_that_did_not_start_has_no_slow_start(world: Callable[..., Any]) -> None:
    """Its phases stand in files and metrics for ever; they are not of now."""
    found = values(evidence(world()))

    assert (0.0, 0.0, 0.0) == (found["seconds"], found["counted_seconds"], found["warming_seconds"])
    assert found["slowest_phase"] is None


def test_a_start_long_before_the_incident_is_another_story(world: Callable[..., Any]) -> None:
    """Five minutes later it is no part of what is asked about."""
    here = world(start_seconds=25.0, during=400.0, rate=2.0)
    window = Window(here.onset - here.before, here.until, here.until - 60.0, here.until)
    known = Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())

    assert (0.0, 0.0) == (start.seconds(known).value, start.counted_seconds(known).value)


def test_without_an_earlier_start_there_is_no_ratio(world: Callable[..., Any]) -> None:
    """The first start of all has nothing to be compared with."""
    known = evidence(world(start_seconds=25.0))
    assert known.rows is not None
    alone = replace(known, rows=replace(known.rows, rings=known.rows.rings[1:]))

    assert start.ratio(alone).value is None
    assert "no earlier start" in start.ratio(alone).detail


@pytest.mark.parametrize("name", start.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(start, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"start.{name}" == found.step
