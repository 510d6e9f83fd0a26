"""Damaged texts are told by share, rise, client and damage, from rows or from Prometheus alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Window
from runbooks.rows import Rows
from runbooks.sources import Sources
from runbooks.steps import quality

T0 = 1_780_000_000.0


def damaged(rows: Rows, share: float, release: str = "", reason: str = "replacement") -> Rows:
    """Return the rows with damaged texts from T0 on, of one release or of all."""
    rng = random.Random(4)
    releases = rows.labels["client_release"]
    reasons = np.array(
        [
            reason if at >= T0 and rng.random() < share and release in {"", one} else ""
            for at, one in zip(rows.start_s.tolist(), releases.tolist(), strict=True)
        ],
        dtype=object,
    )
    return replace(rows, labels={**rows.labels, "request/quality_reason": reasons})


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Rows:
        """Return them."""
        del since, until
        return self.rows


def ask(rows: Rows) -> dict[str, Any]:
    """Triage rows alone, told the alert."""
    sources = Sources(None, FakeRows(rows))
    return triage(sources, alert="LowQualityText", at=T0 + 60.0, clock=lambda: T0 + 61.0)


@pytest.mark.parametrize(
    "options",
    [{"share": 0.2}, {"share": 0.7, "release": "4.2.0"}, {"share": 1.0, "reason": "markup"}],
    ids=["everybody", "one release", "all of them"],
)
def test_damaged_texts_are_named(requests: Callable[..., Rows], options: dict[str, Any]) -> None:
    """Whoever sends them, whatever the damage."""
    found = ask(damaged(requests(), **options))

    assert "low_quality_text" == found["verdict"]["slug"], found["candidates"]


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_a_few_are_not(requests: Callable[..., Rows], share: float) -> None:
    """One in a hundred is the day's."""
    assert ask(damaged(requests(), share))["verdict"]["slug"] is None


def test_the_client_and_the_damage_are_named(requests: Callable[..., Rows], evidence: Callable[..., Evidence]) -> None:
    """Its owner is told the release; what the others send is as good as ever."""
    known = evidence(damaged(requests(), 0.9, "4.2.1"))

    assert float(quality.one_client(known).value or 0) > 0.8
    assert "client_release = 4.2.1" in quality.one_client(known).detail
    assert 0.0 == quality.others_low(known).value
    assert "replacement" == quality.reason(known).value


def test_all_clients_alike_point_at_none(requests: Callable[..., Rows], evidence: Callable[..., Evidence]) -> None:
    """Then something in front of the service is at fault."""
    known = evidence(damaged(requests(), 0.4))

    assert float(quality.one_client(known).value or 0) < 0.2
    assert float(quality.others_low(known).value or 0) > 0.2


def test_prometheus_alone_tells_share_rise_and_damage(
    evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """Images are left out."""
    series = {
        signals.REQUESTS: (growing({"outcome": "ok"}, 20.0, 20.0),),
        signals.LOW_QUALITY: (
            growing({"modality": "text", "reason": "markup"}, 0.0, 4.0),
            growing({"modality": "text", "reason": "empty"}, 0.0, 1.0),
            growing({"modality": "image", "reason": "blur"}, 0.0, 10.0),
        ),
    }
    known = evidence(None, series)

    assert quality.low_share(known).value == pytest.approx(0.25, rel=0.01)
    assert float(quality.low_rise(known).value or 0) > 3
    assert "prometheus" == quality.low_share(known).source


@pytest.mark.parametrize("name", quality.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(quality, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"quality.{name}" == found.step
