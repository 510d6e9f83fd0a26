"""Where to look when nothing can be named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runbooks.evidence import Evidence, Window
from runbooks.signals import QUERIES
from runbooks.unusual import MOST_SIGNALS, unusual_signals


def evidence(here: Any, *, rows: bool = True, metrics: bool = True) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    series = here.metrics().collect(QUERIES, window.since, window.until) if metrics else None
    return Evidence(window, series, here.rows() if rows else None)


@pytest.mark.parametrize("sources", [{}, {"rows": False}, {"metrics": False}])
def test_the_stage_that_got_slower_is_pointed_at_with_its_layer(
    world: Callable[..., Any], sources: dict[str, bool]
) -> None:
    """A slower model is told as seconds in its stage, in its layer, from whichever source is there."""
    found = unusual_signals(evidence(world(model_factor=50.0), **sources))
    told = {one["signal"]: one for one in found}

    assert "model" == told["seconds in model.forward"]["layer"]
    assert told["seconds in model.forward"]["now"] > 20 * told["seconds in model.forward"]["before"]
    assert len(found) <= MOST_SIGNALS


@pytest.mark.parametrize("seed", range(3))
def test_health_is_not_unusual(world: Callable[..., Any], seed: int) -> None:
    """Nothing is pointed at in a healthy service: the usual wobble is no signal."""
    assert [] == [one["signal"] for one in unusual_signals(evidence(world(seed=seed)))]


def test_the_loudest_comes_first(world: Callable[..., Any]) -> None:
    """Signals are ordered by how many times their usual wobble they moved."""
    scores = [one["score"] for one in unusual_signals(evidence(world(model_factor=50.0, fail_share=0.3)))]

    assert scores
    assert sorted(scores, reverse=True) == scores


def test_without_sources_nothing_is_said() -> None:
    """No evidence, no signals."""
    assert [] == unusual_signals(Evidence(Window(0.0, 900.0)))
