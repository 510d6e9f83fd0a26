"""Other answers, answers by batch and other tokens are told apart; float noise is none of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Series, Window
from runbooks.sources import Sources
from runbooks.steps import replayed

T0 = 1_780_000_000.0


def gauge(labels: dict[str, str], value: float, before: float = 1e-6) -> Series:
    """Return a gauge that steps to a value at T0."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    return Series(labels, times, np.where(times < T0, before, value))


def series_of(stored: float, batch: float, tokens: float) -> dict[str, tuple[Series, ...]]:
    """Return what the replay shows."""
    told = (gauge({"against": "stored"}, stored), gauge({"against": "batch"}, batch))
    return {signals.REPLAY_DIFFERENCE: told, signals.REPLAY_TOKENS: (gauge({}, tokens, 0.0),)}


def evidence_of(series: dict[str, tuple[Series, ...]] | None, rows: Any = None) -> Evidence:
    """Return the evidence of an incident from T0 on."""
    return Evidence(Window(T0 - 120.0, T0 + 60.0, T0, T0 + 60.0), series, rows)


def test_each_difference_is_told_by_its_own_step() -> None:
    """The latest of each, not the mean of before and after."""
    evidence = evidence_of(series_of(0.2, 0.002, 0.25))

    assert 0.2 == replayed.stored_difference(evidence).value
    assert 0.002 == replayed.batch_difference(evidence).value
    assert 0.25 == replayed.other_tokens(evidence).value


@pytest.mark.parametrize("series", [None, {}], ids=["no Prometheus", "no stored answers"])
def test_what_was_never_replayed_is_unseen(series: dict[str, tuple[Series, ...]] | None) -> None:
    """Not 0."""
    evidence = evidence_of(series)

    for step in (replayed.stored_difference, replayed.batch_difference, replayed.other_tokens, replayed.changed_during):
        assert step(evidence).value is None


def test_the_models_that_were_served_are_counted(requests: Any) -> None:
    """Two, where one came during the time that was looked at."""
    from dataclasses import replace

    rows = requests()
    models = np.where(np.arange(len(rows)) < len(rows) // 2, "aaa", "bbb").astype(object)

    found = replayed.changed_during(evidence_of({}, replace(rows, labels={**rows.labels, "model": models})))

    assert 2.0 == found.value
    assert "models served: aaa, bbb" == found.detail


class Prometheus:
    """A Prometheus that has these series."""

    def __init__(self, series: dict[str, tuple[Series, ...]]) -> None:
        self.series = series

    def collect(self, queries: Any, since: float, until: float) -> dict[str, tuple[Series, ...]]:
        """Return them."""
        del queries, since, until
        return self.series


@pytest.mark.parametrize(
    ("values", "slug"),
    [
        ((0.2, 0.002, 0.25), "results_differ"),
        ((0.2, 1e-6, 0.0), "results_differ"),
        ((1e-6, 0.03, 0.0), "results_differ"),
        ((2e-5, 1e-6, 0.0), None),
    ],
    ids=["all", "answers alone", "batch alone", "float noise"],
)
def test_triage_names_it_from_any_of_them(values: tuple[float, float, float], slug: str | None) -> None:
    """And nothing of noise."""
    found = triage(Sources(Prometheus(series_of(*values)), None), at=T0 + 60.0, clock=lambda: T0 + 61.0)  # type: ignore[arg-type]

    assert slug == (found["verdict"] or {}).get("slug")
