"""Work that waits for a thread, and what the threads do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, Window
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.signals import CPU, EXECUTOR_WAIT, QUERIES
from runbooks.steps import executor, latency, standstill

HOLDERS = [{"threads": 5, "stack": ["/srv/app/store.py:7 look_up"]}, {"threads": 1, "stack": ["/srv/app/other.py:1 f"]}]


def known(world: Callable[..., Any], waits: tuple[float, ...], cpu: float = 0.2, busy: int = 6) -> Evidence:
    """Return the evidence of a worker of six threads: waits at the scrapes, CPU seconds a second, threads at work."""
    here = world(during=40.0)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    rows = here.rows()
    told = {"wait_s": waits[-1], "threads": 6, "busy": busy, "places": HOLDERS if waits[-1] > 0.05 else []}
    standing = {"lock": 0, "call": 0, "places": []}
    status = {**rows.rings[0].status, "executor": told, "standing": standing}
    ring = replace(rows.rings[0], status=status, last_sign_s=window.until)
    times = window.until - 5.0 * np.arange(len(waits), 0, -1.0)
    scrapes = np.arange(window.since, window.until + 1.0, 5.0)
    series = {
        **here.metrics().collect(QUERIES, window.since, window.until),
        EXECUTOR_WAIT: (Series({}, times, np.array(waits)),),
        CPU: (Series({}, scrapes, 100.0 + cpu * (scrapes - scrapes[0])),),
    }
    return Evidence(window, series, replace(rows, rings=(ring,)))


def nameable(evidence: Evidence) -> bool:
    """Return whether the page of this failure fits."""
    page = load_pages()["thread_pool_exhausted"]
    modules = {"executor": executor, "standstill": standstill, "latency": latency}
    measured = {
        step.run: getattr(modules[step.run.split(".")[0]], step.run.split(".")[1])(evidence) for step in page.steps
    }
    return score_page(page, measured).nameable


def test_a_pool_without_a_free_thread_in_an_idle_process_is_named_with_its_line(world: Callable[..., Any]) -> None:
    """The line at which most of the threads are."""
    evidence = known(world, (0.5, 1.0, 1.5, 2.0, 2.5, 3.0))

    assert 2.0 == executor.counted_wait(evidence).value
    assert 1.0 == executor.busy_share(evidence).value
    assert "5 of 6 threads are at app/store.py:7 look_up" == executor.busy_place(evidence).detail
    assert nameable(evidence)


@pytest.mark.parametrize(
    "twin",
    [
        {"waits": (0.001, 1.5, 0.001, 0.001, 0.001, 0.001)},  # a burst that drains
        {"waits": (2.0,) * 6, "cpu": 1.0},  # the process computes: threads wait for the interpreter
        {"waits": (2.0,) * 6, "busy": 2},  # threads are free: somebody else is late
    ],
)
def test_a_burst_a_computing_process_and_free_threads_are_none(world: Callable[..., Any], twin: Any) -> None:
    """One condition is missing in each."""
    assert not nameable(known(world, **twin))


def test_an_idle_process_whose_executor_nobody_can_see_is_none(world: Callable[..., Any]) -> None:
    """Little CPU and no thread at a lock are what any quiet service shows: alone they name nothing."""
    evidence = known(world, (2.0,) * 6)
    assert evidence.series is not None
    assert evidence.rows is not None
    ring = evidence.rows.rings[0]
    untold = replace(ring, status={key: value for key, value in ring.status.items() if key != "executor"})
    series = {query: found for query, found in evidence.series.items() if query != EXECUTOR_WAIT}
    blind = Evidence(evidence.window, series, replace(evidence.rows, rings=(untold,)))

    assert (None, None) == (executor.counted_wait(blind).value, executor.busy_share(blind).value)
    assert 0.2 == pytest.approx(executor.cpu_share(blind).value)
    assert not nameable(blind)


@pytest.mark.parametrize("name", executor.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, never 0, and a sentence."""
    found = getattr(executor, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"executor.{name}" == found.step
