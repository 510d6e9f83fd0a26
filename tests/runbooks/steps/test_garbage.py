"""Pauses of the collector, and the requests that met them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.steps import event_loop, garbage, latency

GENERATION = {"generation": "2"}


def known(
    world: Callable[..., Any], pause: float = 0.2, every: float = 1.0, met: bool = True, cpu: float = 1.0
) -> Evidence:
    """Return the evidence of an incident with pauses: seconds of each, and one every so many seconds.

    Args:
        world: The small world; its loop stands still for as long as a pause takes.
        pause: Seconds of each pause.
        every: Seconds from pause to pause.
        met: Whether the pauses are where the loop stood still.
        cpu: Share of a pause in which the collector computed.
    """
    here = world(block_seconds=0.2, block_share=0.03, during=60.0)
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    rows = here.rows()
    stood = [one for one in rows.rings[0].episodes if one.start_s >= here.onset]
    starts = [one.start_s for one in stood]
    if not met:
        pairs = pairwise(starts)
        starts = [(one + other) / 2 for one, other in pairs if other - one > 4 * pause]
    told = [
        {
            "start_unix_ns": int(start * 1e9),
            "duration_ns": int(pause * 1e9),
            "generation": 2,
            "cpu_ns": int(cpu * pause * 1e9),
        }
        for start in starts
        if pause >= 0.05
    ]
    ring = replace(rows.rings[0], status={**rows.rings[0].status, "gc_long": told[-32:]}, last_sign_s=window.until)
    scrapes = np.arange(window.since, window.until + 1.0, 5.0)
    number = np.maximum(scrapes - here.onset, 0.0) / every
    series = {
        **here.metrics().collect(signals.QUERIES, window.since, window.until),
        signals.GC_PAUSE: (Series(GENERATION, scrapes, number * pause),),
        signals.GC_COUNT: (Series(GENERATION, scrapes, number),),
    }
    return Evidence(window, series, replace(rows, rings=(ring,)))


def nameable(evidence: Evidence) -> bool:
    """Return whether the page of this failure fits."""
    modules = {"garbage": garbage, "event_loop": event_loop, "latency": latency}
    page = load_pages()["gc_pauses"]
    measured = {
        step.run: getattr(modules[step.run.split(".")[0]], step.run.split(".")[1])(evidence) for step in page.steps
    }
    return score_page(page, measured).nameable


def test_long_pauses_that_slow_requests_met_are_named(world: Callable[..., Any]) -> None:
    """How much of the time, how long each, and that callers waited for them."""
    evidence = known(world, every=0.5)

    assert 0.4 == pytest.approx(garbage.pause_share(evidence).value, rel=0.05)
    assert 0.2 == pytest.approx(garbage.full_pause(evidence).value)
    assert garbage.slow_overlap(evidence).value == pytest.approx(1.0, abs=0.2)
    assert nameable(evidence)


@pytest.mark.parametrize(
    "twin",
    [
        {"pause": 0.0005, "every": 0.002},  # a young generation's
        {"every": 60.0},  # one long one in the incident
        {"met": False},  # nobody waited for them
        {"cpu": 0.05},  # the process got no CPU meanwhile
    ],
)
def test_short_rare_unrelated_or_starved_pauses_are_none(world: Callable[..., Any], twin: Any) -> None:
    """One condition is missing in each."""
    assert not nameable(known(world, **twin))


def test_a_page_of_another_kind_is_told_apart_from_none(world: Callable[..., Any]) -> None:
    """What a damaged entry says is left out; without the list nothing is known of single pauses."""
    evidence = known(world)
    assert evidence.rows is not None
    ring = evidence.rows.rings[0]
    odd = replace(ring, status={**ring.status, "gc_long": ["x", {"start_unix_ns": 1}]})
    without = replace(ring, status={key: value for key, value in ring.status.items() if key != "gc_long"})

    assert 0.0 == garbage.long_pauses(replace(evidence, rows=replace(evidence.rows, rings=(odd,)))).value
    assert None is garbage.long_pauses(replace(evidence, rows=replace(evidence.rows, rings=(without,)))).value


@pytest.mark.parametrize("name", garbage.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, never 0, and a sentence."""
    found = getattr(garbage, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"garbage.{name}" == found.step
