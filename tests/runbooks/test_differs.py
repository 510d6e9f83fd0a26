"""What differs about the bad requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.differs import _compare, what_differs
from runbooks.evidence import Evidence, Window


def evidence(here: Any) -> Evidence:
    """Return a world's rows with the true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, None, here.rows())


@pytest.mark.parametrize("release", ["1.0", "1.1"])
def test_the_client_release_of_the_bad_ones_is_found(world: Callable[..., Any], release: str) -> None:
    """Errors of one release only: that release, and nothing else, is told with its lift."""
    found = what_differs(evidence(world(fail_share=0.3, fail_release=release)))

    assert [("client_release", release)] == [(one["column"], one["value"]) for one in found["findings"]]
    assert found["findings"][0]["lift"] > 10
    assert 1.0 == found["findings"][0]["share_of_bad"]


def test_nothing_differs_is_a_finding(world: Callable[..., Any]) -> None:
    """Errors at random hit all alike, and that is said together with what was compared."""
    found = what_differs(evidence(world(fail_share=0.3)))

    assert [] == found["findings"]
    assert found["summary"].startswith("nothing differs: all requests are hit alike (compared: client_release")


@pytest.mark.parametrize("seed", range(10))
def test_chance_is_not_a_finding(world: Callable[..., Any], seed: int) -> None:
    """A column of noise with many values does not differ: the bound is three standard errors and twice as likely."""
    known = evidence(world(fail_share=0.2, seed=seed))
    assert known.rows is not None
    noise = np.random.default_rng(seed).integers(0, 12, len(known.rows)).astype(str).astype(object)
    rows = replace(known.rows, labels={**known.rows.labels, "agent_family": noise})

    assert [] == what_differs(replace(known, rows=rows))["findings"]


def test_too_few_bad_requests_are_not_compared(world: Callable[..., Any]) -> None:
    """A handful of bad requests is chance."""
    found = what_differs(evidence(world(fail_share=0.01)))

    assert [] == found["findings"]
    assert "too few" in found["summary"]


def test_the_stage_with_the_extra_time_is_told(world: Callable[..., Any]) -> None:
    """A slow model shows in the model's own stage, its parent's own time left out."""
    found = what_differs(evidence(world(model_factor=60.0, rate=10.0)))

    assert "model.forward" == max(found["stage"], key=lambda place: found["stage"][place])


def test_without_rows_it_cannot_be_told() -> None:
    """No rows, no comparison, and it is said."""
    assert "cannot be told without rows" == what_differs(Evidence(Window(0.0, 60.0)))["summary"]


@pytest.mark.parametrize(("bad_with", "of", "found"), [(8, 40, 0), (30, 100, 1)])
def test_a_lift_of_few_requests_is_chance(bad_with: int, of: int, found: int) -> None:
    """Twice as likely in 40 requests lies within chance (two standard errors); thrice in 100 does not."""
    values = np.array(["x"] * of + ["y"] * 100, dtype=object)
    bad = np.array([n < bad_with for n in range(of)] + [n < 9 for n in range(100)])

    assert found == len([one for one in _compare("column", values, bad) if one["value"] == "x"])
