"""Facts of the symptoms' pages, with rows and, where rows are missing, from metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.rows import OUTCOMES, OpenRequest
from runbooks.signals import QUERIES
from runbooks.steps import symptoms

END = 1_780_000_060.0


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def gauge(*values: float, **labels: str) -> Series:
    """Return a series of one sample each 5 s up to the end."""
    return Series(
        labels, END - 5.0 * np.arange(len(values), dtype=np.float64)[::-1], np.array(values, dtype=np.float64)
    )


def metrics_only(**series: tuple[Series, ...]) -> Evidence:
    """Return evidence of a minute without rows."""
    return Evidence(
        Window(END - 120.0, END, END - 60.0, END), {getattr(signals, name): s for name, s in series.items()}
    )


def test_failed_requests_show_from_rows_and_without_them(world: Callable[..., Any]) -> None:
    """A third of the requests fails."""
    known = evidence(world(fail_share=0.33))

    with_rows, without = symptoms.failed_share(known), symptoms.failed_share(replace(known, rows=None))

    assert "ring" == with_rows.source
    assert pytest.approx(0.33, abs=0.06) == with_rows.value
    assert "prometheus" == without.source
    assert pytest.approx(0.33, abs=0.08) == without.value


def test_a_healthy_time_has_no_failures_and_no_disconnects(world: Callable[..., Any]) -> None:
    """Both shares are 0, not unknown."""
    known = evidence(world())

    assert (0.0, 0.0) == (symptoms.failed_share(known).value, symptoms.disconnected_share(known).value)


def test_refused_requests_stand_on_neither_side(world: Callable[..., Any]) -> None:
    """Half of the requests refused, half of the others left: the share is a half."""
    known = evidence(world())
    assert known.rows is not None
    outcome = np.where(np.arange(len(known.rows)) % 2, OUTCOMES.index("refused"), OUTCOMES.index("ok"))
    outcome[::4] = OUTCOMES.index("disconnected")

    found = symptoms.disconnected_share(replace(known, rows=replace(known.rows, outcome=outcome)))

    assert pytest.approx(0.5, abs=0.02) == found.value


def test_without_an_accepted_request_no_share_is_claimed() -> None:
    """Nothing of nothing is unknown."""
    assert symptoms.failed_share(metrics_only()).value is None


def test_the_wait_in_dispatch_leaves_out_the_work_in_it(world: Callable[..., Any]) -> None:
    """Its children's time is not waiting."""
    known = evidence(world())
    assert known.rows is not None
    start, seconds = known.rows.stages["scheduler.dispatch"]
    longer = {**known.rows.stages, "scheduler.dispatch": (start, known.rows.stages["model.forward"][1] + 0.25)}

    found = symptoms.dispatch_wait(replace(known, rows=replace(known.rows, stages=longer)))

    assert pytest.approx(0.25, rel=1e-6) == found.value
    assert len(seconds)


def test_the_oldest_request_of_a_living_worker_is_told_with_its_stage(world: Callable[..., Any]) -> None:
    """A dead worker's never ends and is told elsewhere; without rows the gauge tells."""
    known = evidence(world())
    assert known.rows is not None
    going = tuple(
        OpenRequest("r", known.window.until - age, stage, "0" * 32, 1, alive)
        for age, stage, alive in ((70.0, "model.forward", True), (300.0, "network.send", False), (2.0, "", True))
    )

    found = symptoms.oldest_request(replace(known, rows=replace(known.rows, open=going)))

    assert 70.0 == found.value
    assert "model.forward" in found.detail
    assert 0.0 == symptoms.oldest_request(replace(known, rows=replace(known.rows, open=()))).value
    assert 42.0 == symptoms.oldest_request(metrics_only(OLDEST=(gauge(40.0, 42.0),))).value


def test_the_most_silent_living_worker_is_told(world: Callable[..., Any]) -> None:
    """From its file; without rows the thread's beat tells, never the loop's."""
    known = evidence(world(workers=2))
    assert known.rows is not None
    rings = tuple(
        replace(ring, alive=True, last_sign_s=known.window.until - age)
        for ring, age in zip(known.rows.rings, (1.0, 33.0), strict=True)
    )
    beats = (gauge(50.0, source="loop"), gauge(20.0, source="thread"))

    assert 33.0 == symptoms.beat_age(replace(known, rows=replace(known.rows, rings=rings))).value
    assert 20.0 == symptoms.beat_age(metrics_only(HEARTBEAT=beats)).value
    assert symptoms.beat_age(metrics_only()).value is None


def test_descriptors_are_those_of_the_worker_nearest_to_its_limit(world: Callable[..., Any]) -> None:
    """A dead one does not count, and one that does not tell is unknown."""
    known = evidence(world(workers=3))
    assert known.rows is not None
    pages = ({"fds": 900, "fd_limit": 1024}, {"fds": 10, "fd_limit": 1024}, {"fds": 1024, "fd_limit": 1024})
    rings = tuple(
        replace(ring, alive=index < 2, status=page)
        for index, (ring, page) in enumerate(zip(known.rows.rings, pages, strict=True))
    )
    bare = tuple(replace(ring, status={}) for ring in rings)

    assert 900 / 1024 == symptoms.descriptors_used(replace(known, rows=replace(known.rows, rings=rings))).value
    assert symptoms.descriptors_used(replace(known, rows=replace(known.rows, rings=bare))).value is None


def test_memory_is_compared_with_the_begin() -> None:
    """A fifth more."""
    assert 1.2 == symptoms.memory_ratio(metrics_only(RESIDENT=(gauge(100.0, 110.0, 120.0),))).value
    assert symptoms.memory_ratio(metrics_only()).value is None


def test_requests_a_second_count_the_refused_ones(world: Callable[..., Any]) -> None:
    """Nobody asks: 0; nothing known: unknown."""
    known = evidence(world(rate=20.0))

    assert pytest.approx(20.0, rel=0.25) == symptoms.requests_rate(known).value
    assert 0.0 == symptoms.requests_rate(metrics_only(REQUESTS=(gauge(9.0, 9.0, 9.0, outcome="ok"),))).value
    assert symptoms.requests_rate(metrics_only()).value is None


def test_lost_rows_are_told_by_reason() -> None:
    """What stood there before the time looked at is not counted."""
    lost = (gauge(1000.0, 1030.0, reason="overwritten"), gauge(5.0, 5.0, reason="torn"))

    found = symptoms.rows_lost(metrics_only(LOST=lost))

    assert (30.0, "30 overwritten") == (found.value, found.detail)
    assert symptoms.rows_lost(metrics_only()).value is None


def test_the_target_that_fails_most_is_told() -> None:
    """By job and address."""
    up = (gauge(1.0, 1.0, 1.0, 1.0, job="service"), gauge(1.0, 0.0, 1.0, 0.0, job="triage", instance="a:1"))

    found = symptoms.failed_scrapes(metrics_only(UP=up))

    assert 0.5 == found.value
    assert "triage at a:1" in found.detail
    assert symptoms.failed_scrapes(metrics_only()).value is None
