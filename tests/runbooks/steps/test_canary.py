"""A slow, a flipping and a NaN-answering canary are told from one that is as good, and from a machine that is slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.canary_queries import COMPARISONS, ROLLBACKS, VERSION_REQUESTS
from runbooks.engine import triage
from runbooks.evidence import Evidence
from runbooks.rows import Rows
from runbooks.sources import Sources
from runbooks.steps import canary

T0 = 1_780_000_000.0


def served(rows: Rows, *, slow: float = 1.0, both: float = 1.0, flip: int = 0, nan: int = 0, share: int = 10) -> Rows:
    """Return the rows of a service that serves a canary from T0 on, one request in so many.

    Args:
        rows: The requests.
        slow: How many times as long as the stable version the canary takes.
        both: How many times as long as before both take.
        flip: Of the compared answers one in so many has another label; 0: none.
        nan: Of the canary's requests one in so many is NaN; 0: none.
        share: One in so many goes to the canary.
    """
    count, number = len(rows), np.arange(len(rows))
    during = rows.start_s >= T0
    mine = during & (number % share == 0)
    nth = np.cumsum(mine)
    failed = mine & (nan > 0) & (nth % max(nan, 1) == 0)
    flipped = (flip > 0) & (nth % max(flip, 1) == 0)
    seconds = np.where(during, both, 1.0) * np.where(mine & ~failed, slow, 1.0) * 0.004

    def words(*pairs: tuple[Any, str]) -> Any:
        made = np.full(count, "", dtype=object)
        for mask, word in pairs:
            made[mask] = word
        return made

    labels = {
        "request/version_role": words((during, "stable"), (mine, "canary")),
        "request/version_failed": words((failed, "nan")),
        "request/canary_comparison": words((mine & ~failed, "same"), (mine & ~failed & flipped, "flipped")),
    }
    stages = {**rows.stages, "model.forward": (np.full(count, 0.001), seconds)}
    return replace(rows, labels={**rows.labels, **labels}, stages=stages)


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Rows:
        """Return them."""
        del since, until
        return self.rows


def verdict(rows: Rows) -> Any:
    """Return what triage of rows alone names, blind."""
    return triage(Sources(None, FakeRows(rows)), at=T0 + 60.0, clock=lambda: T0 + 61.0)["verdict"]["slug"]


@pytest.mark.parametrize(
    ("told", "slug"),
    [
        ({"slow": 8.0}, "canary_regression"),
        ({"flip": 4}, "canary_regression"),
        ({"nan": 20, "share": 2}, "model_version_errors"),
        ({}, None),
        ({"both": 8.0}, None),
    ],
    ids=["slow", "flips", "nan", "equal", "both slow"],
)
def test_what_is_wrong_is_named_and_what_is_not_is_not(
    requests: Callable[..., Rows], told: dict[str, Any], slug: str | None
) -> None:
    """By rows alone, without being told of an alert."""
    assert slug == verdict(served(requests(), **told))


def test_the_figures_are_of_the_versions(requests: Callable[..., Rows], evidence: Callable[..., Evidence]) -> None:
    """Eight times the median against the allowed 1.5; the stable version is as before."""
    found = evidence(served(requests(), slow=8.0))
    over, steady = canary.over_limit(found), canary.stable_steady(found)
    assert over.value == pytest.approx(8.0 / 1.5)
    assert steady.value == pytest.approx(1.0)
    assert "canary 32.00 ms" in over.detail


def test_without_a_second_version_nothing_can_be_told(
    requests: Callable[..., Rows], evidence: Callable[..., Evidence]
) -> None:
    """Not 0: nobody looked."""
    found = evidence(requests())
    for step in (canary.over_limit, canary.flipped_share, canary.failed_share, canary.rollbacks, canary.stable_steady):
        assert step(found).value is None


def test_metrics_alone_tell_failures_flips_and_rollbacks(
    evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """Where no rows can be read."""
    found = evidence(
        None,
        {
            VERSION_REQUESTS: (
                growing({"role": "canary", "result": "ok"}, 0.0, 9.8),
                growing({"role": "canary", "result": "nan"}, 0.0, 0.2),
                growing({"role": "stable", "result": "ok"}, 10.0, 10.0),
            ),
            COMPARISONS: (growing({"result": "same"}, 0.0, 0.8), growing({"result": "flipped"}, 0.0, 0.2)),
            ROLLBACKS: (growing({"reason": "flips"}, 0.0, 1 / 60),),
        },
    )
    assert canary.failed_share(found).value == pytest.approx(0.02, rel=0.05)
    assert canary.stable_failed_share(found).value == 0.0
    assert canary.flipped_share(found).value == pytest.approx(0.2, rel=0.05)
    assert canary.over_limit(found).value == pytest.approx(2.0, rel=0.05)
    assert canary.rollbacks(found).value == pytest.approx(1.0, rel=0.1)
