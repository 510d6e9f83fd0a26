"""Fingerprints that differ are named with what they cost; new words alone are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.engine import triage
from runbooks.evidence import Evidence, Series
from runbooks.preprocess_queries import PREPROCESS_MISMATCH
from runbooks.sources import Sources
from runbooks.steps import preprocessing
from tests.runbooks.steps.conftest import T0


def series(served: str, *, since: float = T0) -> dict[str, tuple[Series, ...]]:
    """Return what the service tells: alike until a time, then with this fingerprint."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    before, after = times[times < since], times[times >= since]
    told = [Series({"trained": "aaaa", "served": served}, after, np.full(len(after), float(served != "aaaa")))]
    if len(before):
        told.append(Series({"trained": "aaaa", "served": "aaaa"}, before, np.zeros(len(before))))
    return {PREPROCESS_MISMATCH: tuple(told)}


def with_numbers(rows: Any, unknown: float, confidence: float) -> Any:
    """Return the rows with these means since T0; before it 1% and 0.8."""
    since = rows.end_s >= T0
    numbers = {
        "sentiment.tokenizer/unknown_ratio": np.where(since, unknown, 0.01),
        "confidence": np.where(since, confidence, 0.8),
    }
    return replace(rows, numbers=numbers)


def test_both_fingerprints_and_the_cost_are_told(requests: Any, evidence: Any) -> None:
    """Against the service's own time before."""
    found: Evidence = evidence(with_numbers(requests(), 0.21, 0.7), series("bbbb"))

    one = preprocessing.fingerprints(found)
    assert (1.0, "trained with aaaa, served with bbbb") == (one.value, one.detail)
    before = preprocessing.fingerprints_before(found)
    assert (0.0, "trained and served with aaaa") == (before.value, before.detail)
    assert preprocessing.unknown_rise(found).value == pytest.approx(0.2)
    assert preprocessing.confidence_fall(found).value == pytest.approx(0.1)


def test_what_nobody_told_is_unseen(requests: Any, evidence: Any) -> None:
    """No figure is made up; a few answers have no mean."""
    for found in (evidence(None, None), evidence(requests(), {}), evidence(with_numbers(requests(rate=0.1), 0, 0), {})):
        for name in preprocessing.__all__:
            assert getattr(preprocessing, name)(found).value is None


class Prometheus:
    """A Prometheus that has these series."""

    def __init__(self, found: dict[str, tuple[Series, ...]]) -> None:
        self.found = found

    def collect(self, queries: Any, since: float, until: float) -> dict[str, tuple[Series, ...]]:
        """Return them."""
        del queries, since, until
        return self.found


@pytest.mark.parametrize(
    ("told", "slug"),
    [(series("bbbb"), "preprocess_mismatch"), (series("aaaa"), None), ({}, None)],
    ids=["differ", "alike", "untold"],
)
def test_triage_names_it_from_the_fingerprints_alone(told: dict[str, tuple[Series, ...]], slug: str | None) -> None:
    """Without an alert, and nothing where they are alike."""
    found = triage(Sources(Prometheus(told), None), at=T0 + 60.0, clock=lambda: T0 + 61.0)  # type: ignore[arg-type]

    assert slug == (found["verdict"] or {}).get("slug")
