"""A process that is ready to compute and is not let."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, Window
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.signals import CPU_PERIODS, CPU_THROTTLED, LOOP_CPU_WAIT, QUERIES
from runbooks.steps import cpu, event_loop, latency, stages


def known(world: Callable[..., Any], wait: float, throttled: float | None, before: float = 0.01) -> Evidence:
    """Return the evidence of a worker: share of time its loop waits, share of periods throttled (None: no quota)."""
    here = world(model_factor=20.0, during=60.0)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    times = np.arange(window.since, window.until + 1.0, 5.0)
    bad = np.maximum(times - here.onset, 0.0)
    series = dict(here.metrics().collect(QUERIES, window.since, window.until))
    series[LOOP_CPU_WAIT] = (Series({}, times, before * (times - times[0] - bad) + wait * bad),)
    if throttled is not None:
        series[CPU_PERIODS] = (Series({}, times, 10.0 * (times - times[0])),)
        series[CPU_THROTTLED] = (Series({}, times, 10.0 * throttled * bad),)
    return Evidence(window, series, here.rows())


def nameable(evidence: Evidence) -> bool:
    """Return whether the page of this failure fits."""
    page = load_pages()["cpu_throttled"]
    modules = {"cpu": cpu, "event_loop": event_loop, "latency": latency, "stages": stages}
    measured = {
        step.run: getattr(modules[step.run.split(".")[0]], step.run.split(".")[1])(evidence) for step in page.steps
    }
    return score_page(page, measured).nameable


@pytest.mark.parametrize(("wait", "throttled"), [(0.6, 0.9), (0.6, None), (0.35, 0.5)])
def test_a_quota_and_neighbours_are_named(world: Callable[..., Any], wait: float, throttled: float | None) -> None:
    """With a quota its periods tell; without one the wait of the loop alone."""
    evidence = known(world, wait, throttled)

    assert wait == pytest.approx(cpu.loop_wait_share(evidence).value, rel=0.1)
    assert throttled == (None if throttled is None else pytest.approx(cpu.throttled_share(evidence).value, rel=0.1))
    assert nameable(evidence)


@pytest.mark.parametrize(("wait", "throttled"), [(0.02, 0.0), (0.02, None), (0.1, 0.1)])
def test_a_service_that_gets_its_cpu_is_not_named(
    world: Callable[..., Any], wait: float, throttled: float | None
) -> None:
    """However slow its requests are."""
    assert not nameable(known(world, wait, throttled))


def test_without_a_quota_no_share_of_its_periods_is_told(world: Callable[..., Any]) -> None:
    """Neither for 0 nor against."""
    assert cpu.throttled_share(known(world, 0.5, None)).value is None


@pytest.mark.parametrize("name", cpu.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, never 0, and a sentence."""
    found = getattr(cpu, name)(replace(Evidence(Window(0.0, 60.0))))

    assert found.value is None
    assert found.detail
    assert f"cpu.{name}" == found.step
