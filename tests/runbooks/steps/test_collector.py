"""A dead target of spans is told by spans that nobody takes while requests are fine, and apart from a slow one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.steps import collector
from tests.runbooks.steps.test_disk import T0, TIMES, answering, ask, level


def spans(waiting: float, sent: float, dropped: float = 0.0) -> dict[str, tuple[Series, ...]]:
    """Return what the exporter shows: seconds waited, and spans accepted and given up a second, in the incident."""
    late = np.maximum(TIMES - T0, 0.0)
    return answering() | {
        signals.SPANS_WAITING: (Series({}, TIMES, np.minimum(late, waiting)),),
        signals.SPANS_SENT: (Series({}, TIMES, 100.0 + np.where(TIMES < T0, TIMES - TIMES[0], sent * late)),),
        signals.SPANS_DROPPED: (
            Series({"reason": "deadline"}, TIMES, dropped * late),
            Series({"reason": "rejected"}, TIMES, 50.0 * late),
        ),
    }


@pytest.mark.parametrize(
    ("series", "named"),
    [
        (spans(58.0, 0.0, dropped=3.0), True),
        (spans(58.0, 0.0), True),
        (spans(9.0, 1.0), False),
        (answering(), False),
    ],
)
def test_a_dead_target_is_named_and_a_slow_one_is_not(series: dict[str, tuple[Series, ...]], named: bool) -> None:
    """Told only the time; with spans given up already, and without."""
    told = ask(None, series)

    assert named is ("collector_down" == told["verdict"]["slug"] and not told["abstained"])


def test_what_has_waited_is_the_worst_of_the_last_minute(evidence_of: Callable[..., Evidence]) -> None:
    """At 60 s spans are dropped, and the next one has waited for less."""
    fallen = Series({}, TIMES, np.where(TIMES < T0 + 50.0, 55.0, 2.0))

    assert 55.0 == collector.waiting_seconds(evidence_of({signals.SPANS_WAITING: (fallen,)})).value
    assert 0.0 == collector.waiting_seconds(evidence_of({signals.SPANS_WAITING: (level(9.0, 0.0),)})).value
    assert collector.waiting_seconds(evidence_of({})).value is None


def test_only_what_nobody_answered_counts_as_lost(evidence_of: Callable[..., Evidence]) -> None:
    """A target that refuses is alive."""
    result = collector.lost_spans(evidence_of(spans(58.0, 0.0, dropped=1.0)))

    assert 60.0 == result.value
    assert "60 deadline" == result.detail


@pytest.fixture
def evidence_of() -> Callable[[dict[str, Any]], Evidence]:
    """Return a maker of evidence without rows."""

    def make(series: dict[str, Any]) -> Evidence:
        return Evidence(Window(T0 - 120.0, T0 + 60.0, T0), series, None)

    return make
