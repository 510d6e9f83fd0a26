"""Signs of a worker that died while others went on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runbooks.evidence import Evidence, Window
from runbooks.signals import QUERIES
from runbooks.steps import workers


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def values(known: Evidence) -> dict[str, Any]:
    """Return what each step measures."""
    return {name: getattr(workers, name)(known).value for name in workers.__all__}


def test_a_killed_worker_shows_in_every_step(world: Callable[..., Any]) -> None:
    """One death in files and counters, three that lived through it, three up at every scrape."""
    found = values(evidence(world(dead_after=1.0, dead_workers=1, workers=4)))

    assert {"died_without_a_word": 1.0, "deaths_counted": 1.0, "others_went_on": 3.0, "fewest_up": 3.0} == {
        name: value for name, value in found.items() if name != "replaced"
    }
    assert 0.0 == found["replaced"]


def test_a_recycled_worker_has_not_died(world: Callable[..., Any]) -> None:
    """It said that it stops."""
    found = values(evidence(world(dead_after=1.0, dead_workers=1, workers=4, clean=True)))

    assert (0.0, 0.0, None) == (found["died_without_a_word"], found["deaths_counted"], found["others_went_on"])


def test_when_all_die_nobody_went_on(world: Callable[..., Any]) -> None:
    """That is the whole service."""
    found = values(evidence(world(dead_after=1.0, workers=4)))

    assert (4.0, 4.0) == (found["died_without_a_word"], found["deaths_counted"])
    assert (0.0, 0.0) == (found["others_went_on"], found["fewest_up"])


def test_a_healthy_service_has_no_deaths(world: Callable[..., Any]) -> None:
    """Nothing died, so that nobody had to live through it."""
    found = values(evidence(world(workers=2)))

    assert (0.0, 0.0, None) == (found["died_without_a_word"], found["deaths_counted"], found["others_went_on"])


def test_workers_that_are_up_are_no_sign_where_deaths_are_not_counted(world: Callable[..., Any]) -> None:
    """They are up in healthy times as well."""
    known = evidence(world(workers=2))
    without = {name: found for name, found in (known.series or {}).items() if name != "model_worker_ends_total"}

    assert workers.fewest_up(Evidence(known.window, without)).value is None


def test_a_restart_after_a_death_is_seen_as_its_replacement(world: Callable[..., Any]) -> None:
    """Another file that begins after the last sign of the dead one."""
    here = world(start_seconds=5.0)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    rows = here.rows()
    old, new = rows.rings
    killed = Evidence(window, None, _with_rings(rows, (_unclean(old), new)))

    assert 1.0 == workers.replaced(killed).value
    assert 0.0 == workers.others_went_on(killed).value


def test_deaths_one_after_the_other_are_still_deaths_among_others(world: Callable[..., Any]) -> None:
    """The last one to go had nobody beside it; the first one had."""
    known = evidence(world(workers=3))
    assert known.rows is not None
    first, second, third = known.rows.rings
    gone = [replace(one, alive=False, last_sign_s=known.window.until - age) for one, age in ((first, 30), (second, 20))]
    killed = Evidence(known.window, None, _with_rings(known.rows, (*gone, third)))

    assert (2.0, 2.0) == (workers.died_without_a_word(killed).value, workers.others_went_on(killed).value)


def _with_rings(rows: Any, rings: Any) -> Any:
    return replace(rows, rings=rings)


def _unclean(ring: Any) -> Any:
    return replace(ring, status={**ring.status, "phase": "ready"})


@pytest.mark.parametrize("name", workers.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(workers, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"workers.{name}" == found.step
