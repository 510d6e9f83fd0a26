"""Latency against the service's own past, and where the extra time lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Window
from runbooks.signals import QUERIES
from runbooks.slowness import normal_durations, slow_mask
from runbooks.steps import latency, stages


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def test_all_lengths_slower_together_is_seen_in_rows_and_in_histograms(world: Callable[..., Any]) -> None:
    """A slower model slows all classes; the smallest ratio is far over 1 from either source."""
    known = evidence(world(model_factor=20.0))

    for source in (known, replace(known, rows=None)):
        assert float(latency.all_lengths_slower(source).value or 0) > 5
    assert float(latency.all_lengths_slower(evidence(world())).value or 9) < 1.5


def test_the_objective_is_that_of_the_length_class(world: Callable[..., Any]) -> None:
    """At 1.1 s a short text misses its 0.3 s and the largest share is that one."""
    known = evidence(world(wait_seconds=1.1, wait_share=0.5))

    assert latency.objective_missed(known).value == pytest.approx(1.1 / 0.3, rel=0.05)
    assert "long 7" in latency.objective_missed(known).detail


def test_the_share_of_slow_requests_is_counted(world: Callable[..., Any]) -> None:
    """One in five waits half a second: a fifth is slow; none in health."""
    assert latency.slow_share(evidence(world(wait_seconds=0.5, wait_share=0.2))).value == pytest.approx(0.2, abs=0.03)
    assert float(latency.slow_share(evidence(world())).value or 0) < 0.01


def test_slow_is_against_the_own_class_in_health(world: Callable[..., Any]) -> None:
    """A service that always takes 200 ms has no slow requests at 200 ms."""
    rows = world().rows()
    slower = replace(rows, duration_s=rows.duration_s + 0.2)
    window = (rows.start_s[0], rows.start_s[-1] + 1)

    assert 0 == slow_mask(slower, window).sum()
    assert normal_durations(slower, window).min() > 0.2


def test_slow_is_three_times_the_usual_and_not_a_little_more(world: Callable[..., Any]) -> None:
    """Where 100 ms are usual, 200 ms are no incident and 400 ms are slow."""
    rows = world().rows()
    usual, window = np.full(len(rows), 0.1), (rows.start_s[0], rows.start_s[-1] + 1)
    few = np.arange(len(rows)) % 20 == 0

    assert 0 == slow_mask(replace(rows, duration_s=np.where(few, 0.2, usual)), window).sum()
    assert few.sum() == slow_mask(replace(rows, duration_s=np.where(few, 0.4, usual)), window).sum()


def test_a_class_without_a_past_is_judged_by_its_faster_quarter(world: Callable[..., Any]) -> None:
    """Without healthy requests the lower quartile stands in, which a minority of slow ones does not move."""
    rows = world(wait_seconds=0.5, wait_share=0.3).rows()

    assert slow_mask(rows, (0.0, 1.0)).sum() > 100


def test_a_slow_stage_is_one_place_and_a_blocked_loop_several(world: Callable[..., Any]) -> None:
    """The extra time of a slow model lies in one place, that of a blocked loop wherever somebody waits."""
    one = stages.places_stretched(evidence(world(model_factor=60.0, rate=10.0)))
    several = stages.places_stretched(evidence(world(block_seconds=0.2, block_share=0.05, rate=60.0)))

    assert 1.0 == one.value
    assert float(several.value or 0) >= 2
    assert one.detail.startswith("model.forward")
