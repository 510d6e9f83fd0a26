"""The tokenizer's cache and loads, by hand-made series; the two failures are told apart, and from health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.onset import watched
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.steps import tokenizing as steps
from runbooks.steps.registry import STEPS
from runbooks.token_queries import CACHE_BOUND, CACHED, CONCURRENT_LOADS, LOAD_SECONDS

T0 = 1_780_000_000.0
MIB = 1 << 20
Make = Callable[..., Evidence]
EVERY: tuple[Callable[[Evidence], StepResult], ...] = tuple(getattr(steps, name) for name in steps.__all__)
PAGES = ("TokenizerCacheGrowth", "TokenizerLoadLock")
TIMES = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
SINCE = np.maximum(TIMES - T0, 0.0)


def series(values: Any, **labels: str) -> Series:
    """Return a series at all times."""
    return Series(labels, TIMES, np.broadcast_to(np.asarray(values, dtype=np.float64), TIMES.shape))


def service(
    *,
    kept: float = 200.0,
    bound: float = 200.0,
    each_bytes: float = 8192.0,
    quickest: float = 0.05,
    slowest: float = 0.05,
    loads: int = 1,
) -> dict[str, Any]:
    """Return a service that keeps so many texts in the end and, ten seconds after T0, had loaded tokenizers anew."""
    started = TIMES >= T0 + 10.0
    texts = np.minimum(200.0, bound) + (kept - min(200.0, bound)) * SINCE / 60.0
    return {
        signals.UP: (series(1, job="service"),),
        CACHED: (series(texts),),
        CACHE_BOUND: (series(bound),),
        signals.RESIDENT: (series(100 * MIB + texts * each_bytes, worker="0"),),
        LOAD_SECONDS: (
            series(np.where(started, quickest, 0.06), which="quickest"),
            series(np.where(started, slowest, 0.06), which="slowest"),
        ),
        CONCURRENT_LOADS: (series(np.where(started, loads, 1)),),
    }


def named(known: Evidence) -> list[str]:
    """Return the pages that may be the verdict."""
    measured = {name: step(known) for name, step in STEPS.items()}
    found = [score_page(page, measured) for page in load_pages().values() if page.alert in PAGES]
    return [one.page.alert for one in found if one.nameable]


@pytest.mark.parametrize("step", EVERY)
def test_without_figures_nothing_is_seen(step: Callable[[Evidence], StepResult], evidence: Make) -> None:
    """Not even that all is well."""
    assert step(evidence(None, {})).value is None
    assert step(evidence(None, None)).value is None


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (service(kept=2000), ["TokenizerCacheGrowth"]),
        (service(kept=2000, bound=10_000), []),
        (service(kept=2000, bound=0), []),
        (service(), []),
        (service(quickest=3.0, slowest=12.0, loads=4), ["TokenizerLoadLock"]),
        # one slow file; all slow alike for want of CPU; a large one beside a small one; quick all the same
        (service(quickest=12.0, slowest=12.0, loads=1), []),
        (service(quickest=9.0, slowest=12.0, loads=4), []),
        (service(quickest=1.0, slowest=12.0, loads=2), []),
        (service(quickest=0.1, slowest=0.4, loads=4), []),
        (service(kept=2000, quickest=3.0, slowest=12.0, loads=4), ["TokenizerCacheGrowth", "TokenizerLoadLock"]),
    ],
)
def test_each_is_named_and_no_other(since: dict[str, Any], expected: list[str], evidence: Make) -> None:
    """A cache that fills up to its bound is none, and neither is a load that is slow by itself."""
    assert expected == sorted(named(evidence(None, since)))


def test_memory_that_rises_with_the_cache_is_told_by_text(evidence: Make) -> None:
    """And memory that rises while the cache stands still is another story."""
    found = steps.memory_follows(evidence(None, service(kept=2000)))
    assert found.value == pytest.approx(1.0)
    assert "8.0 KiB each" in found.detail
    assert steps.memory_follows(evidence(None, service())).value is None


def test_loads_of_an_earlier_start_are_not_of_now(evidence: Make) -> None:
    """The gauges keep what the last start took."""
    known = service()
    known[LOAD_SECONDS] = (series(3.0, which="quickest"), series(12.0, which="slowest"))
    known[CONCURRENT_LOADS] = (series(4),)

    assert 0.0 == steps.slowest_load(evidence(None, known)).value
    assert [] == named(evidence(None, known))


def test_a_cache_beyond_its_bound_starts_an_incident(evidence: Make) -> None:
    """A full one does not."""

    def highest(since: dict[str, Any]) -> float:
        known = [one for one in watched(evidence(None, since)) if one.name == "texts beyond the tokenizer's cache"]
        return float(np.nanmax(known[0].values))

    assert (1.0, 0.0) == (highest(service(kept=2000)), highest(service()))
