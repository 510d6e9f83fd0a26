"""Cards and kernels, by hand-made series: each failure is named by its page and no other, healthy use by none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import gpu_queries as gpu
from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.gpu_queries import gpu_levels
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.steps import gpu as steps
from runbooks.steps.registry import STEPS

T0 = 1_780_000_000.0
Make = Callable[..., Evidence]
EVERY: tuple[Callable[[Evidence], StepResult], ...] = tuple(getattr(steps, name) for name in steps.__all__)
PAGES = ("GpuLost", "GpuSaturated", "GpuNoisyNeighbour", "GpuOutOfMemory", "GpuMemoryLeak", "GpuKernelRegression")
GIB = float(1 << 30)
TIMES = np.arange(T0 - 120.0, T0 + 60.1, 5.0)


def series(before: float, during: float, **labels: str) -> Series:
    """Return a series that changes at T0."""
    return Series(labels, TIMES, np.where(TIMES < T0, before, during))


def rising(first: float, pace: float, most: float = 1e18, **labels: str) -> Series:
    """Return a series that rises from T0 on by *pace* a second, up to *most*."""
    return Series(labels, TIMES, np.minimum(first + pace * np.maximum(TIMES - T0, 0.0), most))


def present(state: str, **labels: str) -> tuple[Series, ...]:
    """Return a card's state, of which the present one alone is shown, that changes at T0."""
    before, after = TIMES[TIMES < T0], TIMES[TIMES >= T0]
    if state == "ok":
        return (Series({**labels, "state": "ok"}, TIMES, np.ones(len(TIMES))),)
    return (
        Series({**labels, "state": "ok"}, before, np.ones(len(before))),
        Series({**labels, "state": state}, after, np.ones(len(after))),
    )


def series_of(a_second: float, labels: dict[str, str]) -> Series:
    """Return a counter of one pace."""
    return Series(labels, TIMES, (TIMES - TIMES[0]) * a_second)


def machine(
    *,
    state: str = "ok",
    busy: float = 0.4,
    degraded: float = 0.0,
    other: float = 0.0,
    own: Series | None = None,
    free: float = 70.0,
    spoiled: float = 0.0,
    slow: tuple[str, ...] = (),
    common: float = 1.0,
) -> dict[str, Any]:
    """Return a service and its card, which was well, and since T0 is as said; memory in GiB of 80."""
    own = own or series(10 * GIB, 10 * GIB, gpu="0", owner="own", process="python")
    held = [own]
    if other:
        after = TIMES[TIMES >= T0]
        held.append(Series({"gpu": "0", "owner": "other", "process": "train"}, after, np.full(len(after), other * GIB)))
    kernels = ("gather", "layer_norm", "softmax")
    return {
        signals.UP: (series(1, 1, job="service"),),
        gpu.CARD_STATE: present(state, gpu="0"),
        gpu.UTILIZATION: (series(0.4, busy, gpu="0"),),
        gpu.MEMORY_SIZE: (series(80 * GIB, 80 * GIB, gpu="0"),),
        gpu.MEMORY_FREE: (series(70 * GIB, free * GIB, gpu="0"),),
        gpu.PROCESS_MEMORY: tuple(held),
        gpu.DEGRADED: (series(0, degraded, reason="gpu_saturated"), series(0, 0, reason="queue_full")),
        gpu.KERNEL_NAMED: tuple(series(0, one in slow, kernel=one) for one in kernels),
        gpu.KERNEL_SLOWDOWN: tuple(series(1, 1.4 if one in slow else 1.0, kernel=one) for one in kernels),
        gpu.KERNEL_COMMON: (series(1, common),),
        signals.REQUESTS: (series_of(20.0, {"outcome": "ok"}), rising(0.0, spoiled, outcome="degraded")),
    }


LEAK = rising(10 * GIB, 0.2 * GIB, gpu="0", owner="own", process="python")
ARENA = rising(10 * GIB, 3.0 * GIB, 30 * GIB, gpu="0", owner="own", process="python")


def named(known: Evidence) -> list[str]:
    """Return the pages that may be the verdict, best first."""
    measured = {name: step(known) for name, step in STEPS.items()}
    found = [score_page(page, measured) for page in load_pages().values() if page.alert in PAGES]
    able = [one for one in found if one.nameable]
    return [one.page.alert for one in sorted(able, key=lambda one: -one.confidence)]


@pytest.mark.parametrize("step", EVERY)
def test_without_figures_nothing_is_seen(step: Callable[[Evidence], StepResult], evidence: Make) -> None:
    """Not even that all is well: a machine without a card is no healthy card."""
    assert step(evidence(None, {})).value is None
    assert step(evidence(None, None)).value is None


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (machine(state="lost"), ["GpuLost"]),
        (machine(state="no_permission"), []),
        (machine(busy=0.97, degraded=1.0, spoiled=10.0), ["GpuSaturated"]),
        (machine(busy=0.97), []),
        (machine(busy=0.94), []),
        (machine(busy=0.99, degraded=1.0, spoiled=10.0, other=20.0), ["GpuNoisyNeighbour"]),
        (machine(busy=0.70, other=20.0), []),
        (machine(busy=0.99, degraded=1.0, spoiled=10.0, other=1.0), ["GpuSaturated"]),
        (machine(free=0.5, spoiled=5.0), ["GpuOutOfMemory"]),
        (machine(free=0.5), []),
        (machine(free=4.0, spoiled=5.0), []),
        (machine(own=LEAK, free=58.0), ["GpuMemoryLeak"]),
        (machine(own=ARENA, free=50.0), []),
        (machine(slow=("layer_norm",)), ["GpuKernelRegression"]),
        (machine(), []),
    ],
)
def test_each_is_named_and_no_other(since: dict[str, Any], expected: list[str], evidence: Make) -> None:
    """What looks alike and hurts nobody is named by none."""
    assert expected == named(evidence(None, since))


def test_the_card_the_program_and_the_kernel_are_told(evidence: Make) -> None:
    """A person needs the name, not the count alone."""
    assert "GPU 0: lost" == steps.lost_card(evidence(None, machine(state="lost"))).value
    assert "train on GPU 0" == steps.other_program(evidence(None, machine(other=20.0))).value
    assert "layer_norm" == steps.slowest_kernel(evidence(None, machine(slow=("layer_norm",)))).value


def test_growth_is_told_by_its_pace_and_by_whether_it_goes_on(evidence: Make) -> None:
    """0.2 GiB a second fill 58 GiB in about five minutes; an arena grew in the first third alone."""
    known = evidence(None, machine(own=LEAK, free=58.0))
    assert steps.minutes_left(known).value == pytest.approx(58 / 0.2 / 60, rel=0.01)
    assert steps.growing_share(known).value == 1.0
    assert float(steps.growing_share(evidence(None, machine(own=ARENA, free=50.0))).value or 0.0) < 0.5
    assert 1e6 == steps.minutes_left(evidence(None, machine())).value


def test_cpu_time_is_told_for_each_request(evidence: Make) -> None:
    """Twice the requests at twice the CPU time are flat; with hardly any requests nothing is said."""
    flat = {signals.REQUESTS: (rising(0, 0, outcome="ok"),), signals.CPU: (rising(0, 0),)}
    assert steps.cpu_ratio(evidence(None, flat)).value is None
    for pace, ratio in ((40.0, 1.0), (20.0, 2.0)):
        before, during = np.minimum(TIMES - T0, 0.0), np.maximum(TIMES - T0, 0.0)
        known = {
            signals.REQUESTS: (Series({"outcome": "ok"}, TIMES, 5000.0 + before * 20.0 + during * pace),),
            signals.CPU: (Series({}, TIMES, 500.0 + before * 0.1 + during * 0.2),),
        }
        assert steps.cpu_ratio(evidence(None, known)).value == pytest.approx(ratio, rel=0.1)


def test_memory_of_two_workers_is_added_and_cards_are_kept_apart(evidence: Make) -> None:
    """The card of which most is held tells."""
    size = tuple(series(80 * GIB, 80 * GIB, gpu=card) for card in "01")
    held = (
        series(10 * GIB, 10 * GIB, gpu="0", owner="own", process="a"),
        series(14 * GIB, 14 * GIB, gpu="0", owner="own", process="b"),
        series(20 * GIB, 20 * GIB, gpu="1", owner="own", process="a"),
    )
    found = gpu.held_share(evidence(None, {gpu.MEMORY_SIZE: size, gpu.PROCESS_MEMORY: held}), "own")
    assert found is not None
    assert {0.3} == set(found.values.tolist())


@pytest.mark.parametrize(
    ("since", "name"),
    [
        (machine(state="lost"), "cards that do not answer"),
        (machine(busy=0.97), "a card is saturated"),
        (machine(free=0.5), "a card has no memory left"),
        (machine(own=LEAK), "the service's share of a card's memory"),
        (machine(slow=("softmax",)), "kernels that got slower"),
    ],
)
def test_what_starts_an_incident_of_a_card_moves_by_more_than_matters(
    since: dict[str, Any], name: str, evidence: Make
) -> None:
    """The one that failed alone; a card that is well moves nothing."""
    moved = {
        said
        for said, one, effect in gpu_levels(evidence(None, since))
        if np.ptp(one.values[one.times > T0 - 60]) > effect
    }
    assert {name} == moved
    assert not [one for one in gpu_levels(evidence(None, machine())) if np.ptp(one[1].values) > one[2]]


def test_a_wait_in_dispatch_alone_is_no_card(evidence: Make, requests: Callable[..., Any]) -> None:
    """On a machine without a card, or whose card nobody reads, requests wait for other reasons."""

    def slow(one: dict[str, Any], _rng: Any) -> None:
        one["outcome"] = "ok"

    rows = requests(slow)
    start, took = rows.stages["scheduler.dispatch"]
    waits = replace(rows, stages={**rows.stages, "scheduler.dispatch": (start, took + 0.2)})
    for known in (evidence(waits, {}), evidence(waits, None)):
        assert float(STEPS["symptoms.dispatch_wait"](known).value or 0) > 0.06
        assert [] == named(known)
