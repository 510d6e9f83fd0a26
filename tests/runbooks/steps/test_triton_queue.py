"""What requests wait for inside Triton, by hand-made series: the delay, a busy model, mates that cannot be joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, StepResult
from runbooks.pages import load_pages
from runbooks.scoring import rank, score_page
from runbooks.steps import triton_queue as steps
from runbooks.steps.registry import STEPS
from runbooks.triton_queries import COMPUTE_TIME, EXECUTIONS, INFERENCES, QUEUE_TIME, SERVED

T0 = 1_780_000_000.0
Make = Callable[..., Evidence]
EVERY: tuple[Callable[[Evidence], StepResult], ...] = tuple(getattr(steps, name) for name in steps.__all__)
PAGES = ("QueueDelayMisset", "TritonSlowNetwork")


def served(rps: float, queue: float, compute: float, texts: float = 3.0) -> dict[str, Any]:
    """Return a Triton with 20 requests a second and 9 ms in its queue, which since T0 is as told."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)

    def grows(before: float, since: float) -> tuple[Series, ...]:
        steps_of = np.where(times <= T0, before, since) * 5.0
        return (Series({"model": "sentiment", "version": "2"}, times, np.cumsum(steps_of)),)

    return {
        SERVED: grows(20.0, rps),
        QUEUE_TIME: grows(20.0 * 9e3, rps * queue * 1e6),
        COMPUTE_TIME: grows(20.0 * 1.5e3, rps * compute * 1e6),
        INFERENCES: grows(20.0, rps),
        EXECUTIONS: grows(18.0, rps / texts),
    }


def named(known: Evidence) -> list[str]:
    """Return the pages that may be the verdict, best first."""
    measured = {name: step(known) for name, step in STEPS.items()}
    found = [score_page(page, measured) for page in load_pages().values() if page.alert in PAGES]
    return [one.page.alert for one in rank(found) if one.nameable]


@pytest.mark.parametrize("step", EVERY)
def test_without_a_triton_nothing_is_seen(step: Callable[[Evidence], StepResult], evidence: Make) -> None:
    """Not even that all is well."""
    assert step(evidence(None, {})).value is None
    assert step(evidence(None, None)).value is None


def test_the_figures_are_those_of_the_incident(evidence: Make) -> None:
    """Each by hand: 30 requests a second that wait 60 ms for a model of 2 ms, three in a run."""
    known = evidence(None, served(30.0, 0.06, 0.002))
    found = {step.__name__: step(known).value for step in EVERY}

    assert pytest.approx(0.06, rel=0.05) == found["queue_seconds"]
    assert pytest.approx(0.06 / 0.009, rel=0.05) == found["queue_ratio"]
    assert pytest.approx(30.0, rel=0.05) == found["compute_times"]
    assert pytest.approx(1.8, rel=0.15) == found["waiting"]
    assert pytest.approx(3.0, rel=0.05) == found["texts_per_run"]


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (served(20.0, 0.067, 0.002), ["QueueDelayMisset"]),
        (served(2.0, 0.1, 0.002, 1.0), ["QueueDelayMisset"]),
        # full batches: the delay is as long, and nobody waits it out
        (served(200.0, 0.012, 0.003, 8.0), []),
        # the model itself takes its time
        (served(20.0, 0.067, 0.05), []),
        # many wait at a time: they could have shared a batch, whatever the delay
        (served(100.0, 0.08, 0.008, 1.1), []),
        (served(300.0, 0.05, 0.003, 1.1), []),
        # as many wait, and share batches: the model is busy
        (served(300.0, 0.05, 0.003, 5.0), []),
        (served(20.0, 0.009, 0.0015, 1.1), []),
    ],
)
def test_a_needless_delay_is_named_and_nothing_else(since: dict[str, Any], expected: list[str], evidence: Make) -> None:
    """By the wait, against the model's time and the number of those that wait."""
    assert expected == named(evidence(None, since))
