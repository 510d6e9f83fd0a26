"""When it began, and when it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Window
from runbooks.onset import find_window, first_known
from runbooks.rows import OpenRequest
from runbooks.sources import Sources, gather


def found(here: Any, sources: Sources | None = None, until: float | None = None) -> Window:
    """Return the window that is found in a world."""
    end = until or here.until
    evidence, _ = gather(sources or here.sources(), end - 900.0, end)
    return find_window(evidence.at(replace(evidence.window, known=first_known(evidence))))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"block_seconds": 0.2, "block_share": 0.05},
        {"wait_seconds": 0.5, "wait_share": 0.2},
        {"model_factor": 50.0},
        {"fail_share": 0.3},
        {"dead_after": 0.0},
        {"exporter_dead_after": 0.0},
        {"block_seconds": 0.2, "block_share": 0.05, "before": 40.0, "during": 60.0},
        {"block_seconds": 0.2, "block_share": 0.05, "before": 300.0, "during": 500.0},
    ],
)
def test_the_onset_lies_within_one_scrape_of_the_truth(
    world: Callable[..., Any], options: dict[str, Any], seed: int
) -> None:
    """Whatever changes, the incident's start is found to the width of a bin and it reaches the end."""
    here = world(seed=seed, **options)
    window = found(here)

    assert window.onset is not None
    assert abs(window.onset - here.onset) <= 7.5
    assert window.going_on


@pytest.mark.parametrize(
    "options", [{}, {"surge": 10.0}, {"rate": 0.2}, {"rate": 0.0}, {"prometheus_away": (0.0, 40.0)}]
)
def test_without_a_change_there_is_no_onset(world: Callable[..., Any], options: dict[str, Any]) -> None:
    """Healthy, surging, idle and unobserved times have no onset; the last minute is judged then."""
    window = found(world(**options))

    assert window.onset is None
    assert (window.until - 60.0, window.until) == window.incident


def test_an_incident_that_ended_has_an_end(world: Callable[..., Any]) -> None:
    """Half a minute after it is over, the incident is still found, with its end, and no longer going on."""
    here = world(wait_seconds=0.5, wait_share=0.3)
    late = here.until + 30.0
    window = found(here, until=late)

    assert window.onset is not None
    assert abs((window.ended or 0.0) - here.until) <= 5.0
    assert not window.going_on


def test_nothing_known_is_nothing_found() -> None:
    """Without any source there is no onset."""
    assert find_window(Evidence(Window(0.0, 900.0))).onset is None


def test_the_baseline_begins_where_something_is_known(world: Callable[..., Any]) -> None:
    """Time before the service started is not healthy time."""
    here = world(block_seconds=0.2, block_share=0.05)

    assert here.onset - here.before == pytest.approx(found(here).baseline[0], abs=5.0)


def test_requests_that_stay_begin_the_incident_and_keep_it_going(world: Callable[..., Any]) -> None:
    """What never ends is in no row: without a sign of its own, the incident would end with the last slow row."""
    here = world(during=40.0)
    rows = here.rows()
    last = tuple(replace(ring, last_sign_s=here.until) for ring in rows.rings)
    stay = tuple(
        OpenRequest(rows.rings[0].ring, here.onset + at, "sentiment.preprocess", "0" * 32, 1, alive=True)
        for at in (0.0, 1.0, 2.0)
    )
    requests = here.requests()

    def window(*opened: OpenRequest) -> Window:
        requests._rows = replace(rows, rings=last, open=opened)
        return found(here, Sources(here.metrics(), requests))

    assert window().onset is None
    assert window(stay[0]).onset is None  # one alone may be a slow caller's
    kept = window(*stay)
    assert kept.onset == pytest.approx(here.onset, abs=5.0)
    assert (here.until, "requests that stay") == (kept.ended, kept.signal)
    receiving = (replace(one, stage="network.receive") for one in stay)
    assert window(*receiving).onset is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("share", "rate"), [(0.05, 20.0), (0.3, 20.0), (0.5, 20.0), (0.38, 3.0)])
def test_two_kinds_of_requests_of_different_speed_are_no_incident(
    world: Callable[..., Any], share: float, rate: float, seed: int
) -> None:
    """A share of requests that has always been slow wobbles from bin to bin by chance: nothing began."""
    here = world(rate=rate, seed=seed)
    evidence, _ = gather(here.sources(), here.until - 900.0, here.until)
    rows = evidence.rows
    assert rows is not None
    late = np.random.default_rng(seed).random(len(rows)) < share
    duration = np.where(late, rows.duration_s + 0.15, rows.duration_s)
    rows = replace(rows, duration_s=duration)
    evidence = replace(evidence, rows=rows)

    assert None is find_window(evidence.at(replace(evidence.window, known=first_known(evidence)))).onset
