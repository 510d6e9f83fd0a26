"""What metrics alone tell, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import _measure, triage
from runbooks.evidence import Evidence, Series, Window
from runbooks.sources import Sources
from runbooks.without_rows import failed_share_over, symptoms, untold

TIMES = np.arange(0.0, 201.0, 5.0, dtype=np.float64)


def evidence(**series: list[Series]) -> Evidence:
    """Return evidence of 200 s whose incident began at 150 s."""
    window = Window(0.0, 200.0, onset=150.0, ended=200.0)
    return Evidence(window, {getattr(signals, name): tuple(found) for name, found in series.items()})


def rising(rate_before: float, rate_after: float, **labels: str) -> Series:
    """Return a counter whose rate changes at 150 s."""
    return Series(labels, TIMES, rate_before * TIMES + (rate_after - rate_before) * np.maximum(TIMES - 150.0, 0.0))


def level(before: float, after: float) -> Series:
    """Return a gauge whose level changes at 150 s."""
    return Series({}, TIMES, np.where(TIMES < 150.0, before, after))


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ({"REQUESTS": [rising(10, 10, outcome="ok"), rising(0, 2, outcome="error")]}, ["error_rate"]),
        ({"REQUESTS": [rising(10, 10, outcome="ok"), rising(0, 2, outcome="refused")]}, ["refusals"]),
        ({"REQUESTS": [rising(10, 10, outcome="ok"), rising(1, 2, outcome="error")]}, []),
        ({"REQUESTS": [rising(10, 0, outcome="ok")]}, ["requests_stopped"]),
        ({"REQUESTS": [rising(10, 100, outcome="ok")]}, []),
        ({"RESIDENT": [level(200e6, 600e6)]}, ["memory_growth"]),
        ({"RESIDENT": [level(20e6, 60e6)]}, []),
        ({"DESCRIPTORS_RATIO": [level(0.1, 0.95)]}, ["file_descriptors_near_limit"]),
        ({"DESCRIPTORS_RATIO": [level(0.1, 0.5)]}, []),
        ({"UP": [Series({"job": "service"}, TIMES, np.where(TIMES < 160.0, 1.0, 0.0))]}, ["service_down"]),
    ],
)
def test_metrics_alone_tell_what_users_feel(series: dict[str, list[Series]], expected: list[str]) -> None:
    """Each kind of trouble is told by its own figures, and its healthy neighbour is not."""
    assert expected == [one["symptom"] for one in symptoms(evidence(**series))]


def test_nothing_is_told_twice_where_there_are_rows(world: Callable[..., Any]) -> None:
    """With rows the steps tell it better, and nothing is missing."""
    here = world(fail_share=0.5)
    result = triage(here.sources(), at=here.until, clock=lambda: here.until + 1)

    assert ([], [], None) == (result["symptoms"], result["cannot_be_told"], result["mapping"])


def test_failures_alone_show_when_it_began(world: Callable[..., Any]) -> None:
    """Without rows the counter of failed requests dates the incident, and the summary says how many fail."""
    here = world(fail_share=0.5)
    result = triage(Sources(here.metrics(), None), at=here.until, clock=lambda: here.until + 1)

    assert "failed share (counter)" == result["window"]["signal"]
    assert "of the requests fail" in result["verdict"]["summary"]
    assert result["abstained"]


def test_the_failed_share_is_unknown_where_nothing_ended() -> None:
    """No requests are not no failures."""
    series = [rising(0, 4, outcome="ok"), rising(0, 1, outcome="error")]

    share, _ = failed_share_over(series, np.arange(0.0, 201.0, 5.0))

    assert np.isnan(share[0])
    assert pytest.approx(0.2) == share[-1]


def test_what_cannot_be_told_names_each_thing() -> None:
    """One sentence each: requests, clients, sessions, code, deaths, stages, and the metrics that are not there."""
    found = untold(evidence(), {"model_latency_seconds": "no series of x"})

    assert 7 == len(found)
    assert "model_latency_seconds: no series of x" == found[-1]


def test_a_step_that_is_missing_costs_that_step_alone() -> None:
    """A page of another version may name a step that this one has not."""
    measured = _measure(evidence(), {"liveness.service_target_down", "nowhere.to_be_found"})

    assert "step missing" in measured["nowhere.to_be_found"].detail
    assert {"liveness.service_target_down", "nowhere.to_be_found"} == set(measured)


def test_steps_that_need_rows_say_so() -> None:
    """Nobody has to guess why a step has no value."""
    measured = _measure(evidence(), {"liveness.silent_workers", "liveness.service_target_down"})

    assert measured["liveness.silent_workers"].detail.startswith("cannot be told without rows")
    assert not measured["liveness.service_target_down"].detail.startswith("cannot be told without rows")
