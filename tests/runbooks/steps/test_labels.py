"""Labels without end are told by what the recorder refused, and apart from labels with many known values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Series, Window
from runbooks.sources import Sources
from runbooks.steps import labels


def crowded(share: float) -> Callable[[dict[str, Any], random.Random], None]:
    """Return a label that is refused in a share of the requests."""

    def change(one: dict[str, Any], rng: random.Random) -> None:
        one["crowded"] = rng.random() < share

    return change


class Fake:
    """A source over prepared evidence."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def collect(self, *_: Any) -> Any:
        """Return it."""
        return self.found

    def alert_span(self, *_: Any) -> None:
        """No alert is known."""
        return


def ask(rows: Any, series: Any = None) -> dict[str, Any]:
    """Triage at the end of the incident."""
    sources = Sources(Fake(series) if series else None, Fake(rows) if rows is not None else None)
    return triage(sources, at=1_780_000_060.0, clock=lambda: 1_780_000_061.0)


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_a_label_without_end_is_named_from_rows_alone(requests: Callable[..., Any], share: float) -> None:
    """An id in a few or all requests: the same verdict, with the label's name among the evidence."""
    found = ask(requests(crowded(share)))

    assert "series_explosion" == found["verdict"]["slug"], found["candidates"]
    assert "request/place" in [one["value"] for one in found["evidence"] if one["step"] == "labels.crowded_label"]


def test_refused_attributes_leave_nothing_in_rows_and_are_named_from_the_counter(
    requests: Callable[..., Any], growing: Callable[..., Any]
) -> None:
    """Ids in the names of attributes or stages are refused before they reach a row; the counter tells."""
    series = {
        signals.REQUESTS: (growing({"outcome": "ok"}, 20.0, 20.0),),
        signals.LABELS_REFUSED: (growing({"reason": "attribute_refused"}, 0.0, 10.0),),
        signals.SERIES: (growing({}, 0.0, 0.0),),
    }
    found = ask(requests(), series)

    assert "series_explosion" == found["verdict"]["slug"], found["candidates"]
    assert "refused labels a second" == found["window"]["signal"]


@pytest.mark.parametrize(("growth", "slug"), [(20.0, "series_explosion"), (5.0, None)])
def test_series_within_the_recorders_bounds_are_named_when_they_multiply(
    requests: Callable[..., Any], growing: Callable[..., Any], growth: float, slug: str | None
) -> None:
    """Nothing is refused yet: ten times the series is an explosion, a release with some new stages is none."""
    level = growing({}, 2.0, growth)
    series = {
        signals.REQUESTS: (growing({"outcome": "ok"}, 20.0, 20.0),),
        signals.LABELS_REFUSED: (growing({"reason": "stage_refused"}, 0.0, 0.0),),
        signals.SERIES: (Series(level.labels, level.times, level.values + 100.0),),
    }

    assert slug == ask(requests(), series)["verdict"]["slug"]


@pytest.mark.parametrize("share", [0.0, 0.005])
def test_many_known_values_are_not_named(requests: Callable[..., Any], share: float) -> None:
    """Nothing refused, or next to nothing, is no explosion."""
    found = ask(requests(crowded(share)))

    assert found["verdict"]["slug"] is None, found["candidates"]


def test_each_sign_has_the_figure_that_was_put_in(
    requests: Callable[..., Any], evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """Ratio, rise, label, harm and growth come out as made."""
    series = {
        signals.REQUESTS: (growing({"outcome": "ok"}, 20.0, 20.0),),
        signals.LABELS_REFUSED: (growing({"reason": "string_budget"}, 0.0, 20.0),),
        signals.SERIES: (growing({}, 1.0, 20.0),),
    }
    known = evidence(requests(crowded(0.5)), series)

    assert labels.refused_ratio(known).value == pytest.approx(1.0, abs=0.05)
    assert float(labels.refused_rise(known).value or 0) > 50
    assert "request/place" == labels.crowded_label(known).value
    assert 0.0 == labels.hurt_share(known).value
    assert labels.series_growth(known).value == pytest.approx(1320 / 115, rel=0.01)


@pytest.mark.parametrize("name", labels.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(labels, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"labels.{name}" == found.step
