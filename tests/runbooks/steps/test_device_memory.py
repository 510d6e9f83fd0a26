"""Sessions of a model and the memory of its device, by hand-made series; the two failures are told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.memory_queries import DUPLICATE_SESSIONS, FREE_MEMORY, MEMORY_SHORT, OPEN_SESSIONS
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.steps import device_memory as steps
from runbooks.steps.registry import STEPS

T0 = 1_780_000_000.0
Make = Callable[..., Evidence]
EVERY: tuple[Callable[[Evidence], StepResult], ...] = tuple(getattr(steps, name) for name in steps.__all__)
PAGES = ("ModelLoadedTwice", "BatchTooLarge")
MIB = 1 << 20


def series(before: float, during: float, **labels: str) -> Series:
    """Return a series that changes at T0."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    return Series(labels, times, np.where(times < T0, before, during))


def counter(grown: float, **labels: str) -> Series:
    """Return a counter that grows once, ten seconds after T0."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    return Series(labels, times, np.where(times >= T0 + 10.0, grown, 0.0))


def service(*, second: bool = False, duplicate: bool = True, short: float = 0.0, failed: float = 0.0) -> dict[str, Any]:
    """Return a service that was well, and since T0 holds a second session, or has no memory for some requests."""
    return {
        signals.UP: (series(1, 1, job="service"),),
        OPEN_SESSIONS: (series(1, 1 + second),),
        DUPLICATE_SESSIONS: (series(0, second and duplicate),),
        signals.RESIDENT: (series(100 * MIB, (100 + 20 * second) * MIB, worker="0"),),
        MEMORY_SHORT: (counter(short),),
        FREE_MEMORY: (series(500 * MIB, (500 if not short else 50) * MIB),),
        signals.REQUESTS: (counter(1000, outcome="ok"), counter(failed, outcome="error")),
    }


def named(known: Evidence) -> list[str]:
    """Return the pages that may be the verdict, best first."""
    measured = {name: step(known) for name, step in STEPS.items()}
    found = [score_page(page, measured) for page in load_pages().values() if page.alert in PAGES]
    able = [one for one in found if one.nameable]
    return [one.page.alert for one in sorted(able, key=lambda one: -one.confidence)]


@pytest.mark.parametrize("step", EVERY)
def test_without_figures_nothing_is_seen(step: Callable[[Evidence], StepResult], evidence: Make) -> None:
    """Not even that all is well."""
    assert step(evidence(None, {})).value is None
    assert step(evidence(None, None)).value is None


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (service(second=True), ["ModelLoadedTwice"]),
        (service(second=True, duplicate=False), []),
        (service(short=40.0, failed=40.0), ["BatchTooLarge"]),
        (service(short=4.0, failed=4.0), []),
        (service(failed=40.0), []),
        (service(), []),
    ],
)
def test_each_is_named_and_no_other(since: dict[str, Any], expected: list[str], evidence: Make) -> None:
    """Another model beside the first is no duplicate; failures of another kind are no want of memory."""
    assert expected == named(evidence(None, since))


def test_memory_that_a_second_session_took_is_the_sessions_story(evidence: Make) -> None:
    """Both are seen; the second session is what BatchTooLarge holds against itself."""
    known = evidence(None, service(second=True, short=40.0, failed=40.0))
    assert "ModelLoadedTwice" == named(known)[0]
