"""What is wrong with a Triton, by hand-made series; the four ways are told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.pages import load_pages
from runbooks.scoring import rank, score_page
from runbooks.steps import triton as steps
from runbooks.steps.registry import STEPS
from runbooks.triton_queries import CANARY, CONNECTION_COUNT, CONNECTION_SUM, FALLBACK, HEALS, SERVED, SERVED_TIME

T0 = 1_780_000_000.0
Make = Callable[..., Evidence]
EVERY: tuple[Callable[[Evidence], StepResult], ...] = tuple(getattr(steps, name) for name in steps.__all__)
PAGES = ("TritonDown", "TritonHung", "TritonStubDead", "TritonModelUnloaded", "TritonSlowNetwork", "ClientPoolWait")


def series(before: float | None, during: float | None, **labels: str) -> Series:
    """Return a series that changes at T0; None is no sample."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    values = np.array([before if time < T0 else during for time in times], dtype=float)
    seen = ~np.isnan(values)
    return Series(labels, times[seen], values[seen])


def counter(grown: float | None, **labels: str) -> Series:
    """Return a counter that grows once, ten seconds after T0; None is no sample since T0."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    if grown is None:
        times = times[times < T0]
    return Series(labels, times, np.where(times >= T0 + 10.0, grown or 0.0, 0.0))


def triton(state: str | None, *, up: float = 1.0, heals: float = 0.0, **failed: float) -> dict[str, Any]:
    """Return a Triton that was well, and since T0 is in a state; None is no supervisor any more."""
    states = {"ok": 0.0, "timeout": 0.0, "stub_dead": 0.0, "unloaded": 0.0, "refused": 0.0}
    now: dict[str, float | None] = {name: None if state is None else float(name == state) for name in states}
    return {
        signals.UP: (series(1, up, job="triton"), series(1, 1, job="service")),
        CANARY: tuple(series(float(name == "ok"), now[name], state=name) for name in states),
        HEALS: (counter(None if state is None else heals),),
        FALLBACK: tuple(
            counter(failed.get(reason, 0.0), reason=reason)
            for reason in ("breaker_open", "late", "refused", "timeout", "stub_dead", "unloaded")
        ),
    }


def steady(before: float, during: float, **labels: str) -> Series:
    """Return a counter that grows by so much every 5 s before and since T0."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    return Series(labels, times, np.cumsum(np.where(times <= T0, before, during)))


def calls(seen: float, own: float) -> dict[str, Any]:
    """Return a Triton that is well, 100 calls each 5 s; since T0 a call takes so many seconds, and so many inside."""
    return triton("ok") | {
        signals.STAGE_COUNT: (steady(100, 100, stage="triton.client"),),
        signals.STAGE_SUM: (steady(1.2, 100 * seen, stage="triton.client"), steady(9, 9, stage="network.send")),
        SERVED: (steady(100, 100, model="sentiment", version="2"),),
        SERVED_TIME: (steady(1.1e6, 1e8 * own, model="sentiment", version="2"),),
    }


def waiting(seconds: float, own: float) -> dict[str, Any]:
    """Return the same, where a call since T0 waits so long for a connection and is not slow otherwise."""
    return calls(seconds + own, own) | {
        CONNECTION_COUNT: (steady(100, 100),),
        CONNECTION_SUM: (steady(0.0, 100 * seconds),),
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


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (triton(None, up=0.0, refused=6.0, breaker_open=500.0), ["TritonDown"]),
        (triton("refused", up=0.0, refused=6.0, breaker_open=500.0, late=90.0), ["TritonDown"]),
        (triton("timeout", up=0.0, timeout=7.0, breaker_open=500.0), ["TritonHung"]),
        (triton("ok", heals=3.0, timeout=5.0, stub_dead=1.0), ["TritonStubDead"]),
        (triton("stub_dead", heals=1.0, timeout=5.0), ["TritonStubDead"]),
        (triton("unloaded", unloaded=6.0, breaker_open=500.0), ["TritonModelUnloaded"]),
        (calls(0.092, 0.011), ["TritonSlowNetwork"]),
        # the calls that hung in a dead stub are long as well, and Triton itself is quick: no network is to blame
        (calls(0.054, 0.011) | {HEALS: (counter(1.0),)}, ["TritonStubDead"]),
        (calls(0.092, 0.091), []),
        (waiting(0.08, 0.012), ["ClientPoolWait"]),
        # a busy server keeps its connections busy: the wait is as long as a call or two
        (waiting(0.08, 0.06), []),
        (waiting(0.015, 0.002), []),
        (calls(0.030, 0.011), []),
        (triton("ok"), []),
        (triton("ok", refused=4.0), []),
    ],
)
def test_each_way_is_named_and_no_other(since: dict[str, Any], expected: list[str], evidence: Make) -> None:
    """From target, canary and failed calls; a Triton that is well again is none of them."""
    assert expected == named(evidence(None, since))


def test_a_restart_in_which_nobody_told_of_the_canary_is_none_of_them(evidence: Make) -> None:
    """A server that ends says "not ready" to some calls, while its supervisor is not there: that is no proof."""
    known = triton(None, unloaded=5.0, refused=2.0)

    assert [] == named(evidence(None, known))
    assert [] == named(evidence(None, calls(0.012, 0.011) | {CANARY: (), HEALS: ()}))
