"""Requests that stay, and the threads that stand still meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, Window
from runbooks.pages import load_pages
from runbooks.rows import OpenRequest
from runbooks.scoring import score_page
from runbooks.signals import QUERIES, STANDING
from runbooks.steps import event_loop, standstill

PAIR = (("lock", 1, "sell"), ("lock", 1, "restock"), ("lock", 4, "wait_in_line"))


def page_of(*places: tuple[str, int, str]) -> Mapping[str, Any]:
    """Return a status page with threads that stand: what for, how many, in which function."""
    told = [
        {"waits": waits, "threads": count, "stack": [f"/srv/app/ledger.py:{at} {name}"]}
        for at, (waits, count, name) in enumerate(places)
    ]
    return {"standing": {"places": told}}


def known(
    world: Callable[..., Any], *places: tuple[str, int, str], ages: tuple[float, ...] = (12.0, 20.0, 30.0)
) -> Evidence:
    """Return the evidence of a worker with those threads and with requests in flight of those ages."""
    here = world(during=40.0)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    rows = here.rows()
    ring = replace(rows.rings[0], status={**rows.rings[0].status, **page_of(*places)}, last_sign_s=window.until)
    open_ = tuple(
        OpenRequest(ring.ring, window.until - age, "sentiment.preprocess", "0" * 32, 1, alive=True) for age in ages
    )
    series = here.metrics().collect(QUERIES, window.since, window.until)
    standing = Series({"waits": "lock"}, np.array([window.until - 5.0]), np.array([6.0]))
    return Evidence(window, {**series, STANDING: (standing,)}, replace(rows, rings=(ring,), open=open_))


def judged(evidence: Evidence) -> Any:
    """Return how the page of this failure fits."""
    page = load_pages()["worker_deadlock"]
    modules = {"event_loop": event_loop, "standstill": standstill}
    measured = {
        step.run: getattr(modules[step.run.split(".")[0]], step.run.split(".")[1])(evidence) for step in page.steps
    }
    return score_page(page, measured)


def test_a_pair_of_places_and_requests_that_stay_are_a_deadlock(world: Callable[..., Any]) -> None:
    """Both lines are named, each with its threads."""
    evidence = known(world, *PAIR)

    assert 3.0 == standstill.stuck_requests(evidence).value
    assert 3.0 == standstill.lock_places(evidence).value
    assert "1 at app/ledger.py:0 sell; 1 at app/ledger.py:1 restock" in standstill.lock_places(evidence).detail
    assert judged(evidence).nameable


@pytest.mark.parametrize(
    ("places", "ages"),
    [
        (PAIR, (1.0, 2.0)),  # a queue that moves: nobody stays
        ((("call", 6, "ask_a_server"),), (12.0, 30.0)),  # threads in calls
    ],
)
def test_a_queue_that_moves_and_threads_in_calls_are_no_deadlock(
    world: Callable[..., Any], places: Any, ages: tuple[float, ...]
) -> None:
    """One condition is missing in each."""
    evidence = known(world, *places, ages=ages)
    assert evidence.series is not None
    series = {**evidence.series, STANDING: ()} if places is not PAIR else evidence.series

    assert not judged(replace(evidence, series=series)).nameable


def test_a_request_is_as_old_as_it_was_when_its_worker_was_last_seen(world: Callable[..., Any]) -> None:
    """What a kill cut off young has not stayed, however long ago that is."""
    evidence = known(world, ages=(30.0,))
    assert evidence.rows is not None
    dead = replace(evidence.rows.rings[0], last_sign_s=evidence.window.until - 25.0)

    assert 0.0 == standstill.stuck_requests(replace(evidence, rows=replace(evidence.rows, rings=(dead,)))).value


@pytest.mark.parametrize("name", standstill.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, never 0, and a sentence."""
    found = getattr(standstill, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"standstill.{name}" == found.step


def test_coroutines_at_a_lock_that_is_never_given_back_are_a_deadlock_without_any_thread(
    world: Callable[..., Any],
) -> None:
    """No thread stands; the line of code that awaits is named. One that awaits alone, or something else, is none."""

    def with_tasks(count: int, waits: str) -> Evidence:
        place = {"waits": waits, "tasks": count, "stack": ["/srv/app/ledger.py:7 book"], "still_s": 9.0}
        tasks = {"lock": 0, "await": 0, "places": [place], waits: count}
        evidence = known(world)
        assert evidence.rows is not None
        [ring] = evidence.rows.rings
        ring = replace(ring, status={**ring.status, "standing_tasks": tasks})
        series = {**(evidence.series or {}), STANDING: ()}
        return replace(evidence, series=series, rows=replace(evidence.rows, rings=(ring,)))

    assert "3 at app/ledger.py:7 book" == standstill.tasks_at_locks(with_tasks(3, "lock")).detail
    assert judged(with_tasks(3, "lock")).nameable
    assert not judged(with_tasks(1, "lock")).nameable
    assert not judged(with_tasks(9, "await")).nameable
    assert standstill.tasks_at_locks(known(world)).value is None
