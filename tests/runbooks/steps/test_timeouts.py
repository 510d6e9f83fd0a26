"""Callers that leave by a clock are told from those that leave a slow service."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence
from runbooks.pages import load_pages
from runbooks.scoring import score_page
from runbooks.sources import Sources
from runbooks.steps import timeouts
from runbooks.steps.registry import STEPS


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Any:
        """Return them."""
        del since, until
        return self.rows


def ask(rows: Any) -> dict[str, Any]:
    """Triage rows alone at the end of the incident."""
    return triage(Sources(None, FakeRows(rows)), at=1_780_000_060.0, clock=lambda: 1_780_000_061.0)


def impatient(one: dict[str, Any], rng: random.Random) -> None:
    """One request in six is of a new release that gives up after 100 ms."""
    if rng.random() < 1 / 6:
        one |= {"release": "9.0", "outcome": "disconnected", "middleware": 0.1 + rng.random() * 0.01}


def proxy(one: dict[str, Any], rng: random.Random) -> None:
    """A proxy in front of all gives up on one request in six."""
    if rng.random() < 1 / 6:
        one |= {"outcome": "disconnected", "middleware": 0.25}


def patient(one: dict[str, Any], rng: random.Random) -> None:
    """The same requests, waited for."""
    if rng.random() < 1 / 6:
        one |= {"release": "9.0", "middleware": 0.2}


def people(one: dict[str, Any], rng: random.Random) -> None:
    """A few close the page, whenever they like."""
    if rng.random() < 0.01:
        one |= {"outcome": "disconnected", "middleware": rng.random()}


def slow(one: dict[str, Any], rng: random.Random) -> None:
    """Everything takes long, and people leave after different times."""
    one["middleware"] = 0.4
    if rng.random() < 1 / 6:
        one |= {"outcome": "disconnected", "middleware": 0.1 + rng.random()}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("change", [impatient, proxy])
def test_a_short_timeout_is_named_from_rows_alone(requests: Callable[..., Any], change: Any, seed: int) -> None:
    """Whether one client's or everybody's."""
    found = ask(requests(change, seed=seed))

    assert "upstream_timeout" == found["verdict"]["slug"], found["candidates"]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("change", [None, patient, people, slow])
def test_what_looks_alike_is_not_named(requests: Callable[..., Any], change: Any, seed: int) -> None:
    """Patient callers, people who close pages, and a service that is left since it is slow."""
    found = ask(requests(change, seed=seed))

    assert found["verdict"]["slug"] != "upstream_timeout", found["candidates"]


def test_without_rows_callers_that_leave_a_slow_service_are_not_told_from_a_timeout(
    growing: Callable[..., Any], evidence: Callable[..., Evidence]
) -> None:
    """Metrics tell how many left and not after how long: the failure's own sign is not seen."""
    left = (growing({"outcome": "ok"}, 200.0, 200.0), growing({"outcome": "disconnected"}, 0.0, 40.0))
    known = evidence(None, {signals.REQUESTS: left})
    page = load_pages()["upstream_timeout"]
    found = score_page(page, {step.run: STEPS[step.run](known) for step in page.steps})

    assert float(timeouts.left_rise(known).value or 0) > 3
    assert not found.nameable
    assert 0.0 == found.confidence


def test_client_and_time_are_named(requests: Callable[..., Any], evidence: Callable[..., Evidence]) -> None:
    """The client's owner is told which release, and how long its timeout is."""
    known = evidence(requests(impatient))

    assert timeouts.one_client(known).value == pytest.approx(1.0)
    assert "client_release = 9.0" in timeouts.one_client(known).detail
    assert timeouts.same_time(known).value == 1.0
    assert "left after 11" in timeouts.same_time(known).detail
    assert timeouts.answers_slower(known).value == pytest.approx(1.0, abs=0.2)


def test_slow_answers_are_told_as_what_they_leave_for(
    requests: Callable[..., Any], evidence: Callable[..., Evidence]
) -> None:
    """Times differ and the others have become slower too."""
    known = evidence(requests(slow))

    assert float(timeouts.answers_slower(known).value or 0) > 10
    assert float(timeouts.same_time(known).value or 1) < 0.8


def test_too_few_say_nothing(requests: Callable[..., Any], evidence: Callable[..., Evidence]) -> None:
    """Without callers that left there is no time and no client to name, and no rows are no evidence."""
    for known in (evidence(requests()), evidence(None)):
        assert timeouts.same_time(known).value is None
        assert timeouts.one_client(known).value is None


def test_prometheus_alone_tells_the_share(evidence: Callable[..., Evidence], growing: Callable[..., Any]) -> None:
    """Four of 24 accepted ones; refused ones are nobody's patience."""
    series = {
        signals.REQUESTS: (
            growing({"outcome": "ok"}, 20.0, 20.0),
            growing({"outcome": "disconnected"}, 0.0, 4.0),
            growing({"outcome": "refused"}, 0.0, 30.0),
        )
    }
    known = evidence(None, series)

    assert timeouts.left_share(known).value == pytest.approx(4 / 24, rel=0.01)
    assert float(timeouts.left_rise(known).value or 0) > 3
    assert timeouts.left_share(known).source == "prometheus"
