"""Filters that hold up one kind of agent are told from busy machines, from waiting, and from kinds that are alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Window
from runbooks.rows import Episode, RingLife
from runbooks.sources import Sources
from runbooks.steps import filters


def backtracking(
    seconds: float = 0.13,
    share: float = 0.13,
    *,
    family: str = "safari_ios",
    place: str = "filter",
    cpu: float = 0.95,
    noise: float = 0.0,
) -> Callable[[dict[str, Any], random.Random], None]:
    """Return a rule that holds up a share of one family's requests, and of all others' by chance."""

    def change(one: dict[str, Any], rng: random.Random) -> None:
        if one["family"] == family and rng.random() < share:
            one[place] += seconds
            one["cpu_share"] = cpu
        elif rng.random() < noise:
            one["filter"] += 0.03

    return change


BAD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as the drill has it": ({}, {}),
    "30 ms in each request of one family": ({"seconds": 0.03, "share": 1.0}, {}),
    "two seconds, rarely": ({"seconds": 2.0, "share": 0.05}, {}),
    "five seconds, the first of them": ({"seconds": 5.0, "share": 0.015}, {}),
    "another family": ({"family": "chrome"}, {}),
    "little traffic": ({"share": 0.5}, {"rate": 4.0}),
    "on a noisy machine": ({"noise": 0.003}, {}),
    "without a healthy time": ({"share": 0.3}, {"before": 3.0}),
}
HEALTHY: dict[str, Callable[[dict[str, Any], random.Random], None] | None] = {
    "nothing": None,
    "a few stalls of the machine": backtracking(share=0.0, noise=0.01),
    "many stalls of the machine": backtracking(share=0.0, noise=0.2),
    "long but simple agents": backtracking(seconds=0.0003, share=1.0),
    "an awaited look-up for one family": backtracking(cpu=0.01),
}


class FakeRows:
    """A recorder over prepared rows."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def collect(self, since: float, until: float) -> Any:
        """Return them."""
        del since, until
        return self.rows


def verdict(rows: Any) -> dict[str, Any]:
    """Triage rows alone at the end of the incident."""
    found = triage(Sources(None, FakeRows(rows)), at=1_780_000_060.0, clock=lambda: 1_780_000_061.0)
    return {"slug": found["verdict"]["slug"], "candidates": found["candidates"]}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", BAD)
def test_a_rule_that_backtracks_is_named_from_rows_alone(requests: Callable[..., Any], case: str, seed: int) -> None:
    """Whatever the family, the time and the share: the verdict is the same."""
    change, options = BAD[case]

    found = verdict(requests(backtracking(**change), seed=seed, **options))

    assert "regex_backtracking" == found["slug"], found["candidates"]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", HEALTHY)
def test_what_looks_alike_is_not_named(requests: Callable[..., Any], case: str, seed: int) -> None:
    """Stalls hit all kinds, simple agents cost nothing, and waiting burns no CPU."""
    found = verdict(requests(HEALTHY[case], seed=seed))

    assert "regex_backtracking" != found["slug"], found["candidates"]


def test_each_sign_has_the_figure_that_was_put_in(
    requests: Callable[..., Any], evidence: Callable[..., Evidence]
) -> None:
    """Excess, concentration, CPU share and ratio come out as made."""
    known = evidence(requests(backtracking()))

    assert 0.05 < float(filters.busy_share(known).value or 0) < 0.25
    assert 1.0 == filters.one_kind_of_agent(known).value
    assert "mobile safari_ios" in filters.one_kind_of_agent(known).detail
    assert filters.computing_share(known).value == pytest.approx(0.95, abs=0.01)
    assert 0.0 == filters.others_held_up(known).value
    assert float(filters.time_ratio(known).value or 0) > 20
    assert filters.in_preprocess(known).value == pytest.approx(1.0, abs=0.01)


def test_time_that_the_loop_waited_for_a_cpu_is_no_time_of_the_stage(
    requests: Callable[..., Any], evidence: Callable[..., Evidence]
) -> None:
    """On a starved machine a rule that computes is still seen to compute, and a wait is still a wait."""

    def share(cpu: float, starved: float) -> float:
        rows = requests(backtracking(cpu=cpu))
        looked_at = evidence(rows)
        assert looked_at.rows is not None
        held = 1.05 * float(looked_at.rows.stages[filters.FILTERS][1].sum())
        since = looked_at.window.incident[0]
        blocked = (Episode(since + 1.0, held, ("filters.py:21 match",), run_wait_s=starved * held),)
        life = RingLife(ring="ring0", worker="0", alive=True, started_s=since - 600.0, last_sign_s=since + 30.0)
        known = evidence(replace(rows, rings=(replace(life, episodes=blocked, status={"ready": True}),)))
        return float(filters.computing_share(known).value or 0.0)

    assert 0.2 == pytest.approx(share(0.2, starved=0.0), abs=0.05)
    assert share(0.2, starved=0.75) > 0.8
    assert share(0.0, starved=0.75) < 0.1


def test_middleware_around_the_stage_counts_and_its_cpu_is_the_processes(
    requests: Callable[..., Any], evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """A rule outside of the stage shows in front of the model; what it burns shows in the process alone."""
    rows = requests(backtracking(place="middleware"))
    computes = evidence(rows, {signals.CPU: (growing({}, 0.1, 0.22),)})
    waits = evidence(rows, {signals.CPU: (growing({}, 0.1, 0.1),)})

    assert 1.0 == filters.one_kind_of_agent(computes).value
    assert float(filters.in_preprocess(computes).value or 0) < 0.05
    assert float(filters.computing_share(computes).value or 0) > 0.5
    assert float(filters.computing_share(waits).value or 0) < 0.1
    assert filters.computing_share(evidence(rows)).value is None


def test_a_wait_is_told_from_computing_also_without_a_healthy_time(
    requests: Callable[..., Any], evidence: Callable[..., Evidence], growing: Callable[..., Any]
) -> None:
    """All CPU seconds of the process are an upper bound of what the filters burned: far fewer, and they wait."""

    def share(during: float) -> float | None:
        known = evidence(requests(backtracking(place="middleware")), {signals.CPU: (growing({}, 0.1, during),)})
        begin = known.window.incident[0] - 5.0
        value = filters.computing_share(replace(known, window=replace(known.window, known=begin, since=begin))).value
        return None if value is None else float(value)

    assert 0.0 < (share(0.01) or 0.0) < 0.35
    assert share(2.0) is None


def test_the_wait_for_a_body_is_no_filter(requests: Callable[..., Any], evidence: Callable[..., Evidence]) -> None:
    """A kind of phone with a slow uplink is not held up by us."""

    def slow_uplink(one: dict[str, Any], rng: random.Random) -> None:
        if one["family"] == "safari_ios":
            one["body"] = rng.uniform(0.1, 2.0)

    known = evidence(requests(slow_uplink))

    assert 0.0 == filters.busy_share(known).value
    assert 0.0 == filters.one_kind_of_agent(known).value


def test_one_kind_alone_does_not_stand_out(requests: Callable[..., Any], evidence: Callable[..., Evidence]) -> None:
    """Where all agents are alike, that the slow ones are too speaks for no rule: it may be any blocking call."""

    def all_python(one: dict[str, Any], rng: random.Random) -> None:
        one["device"], one["family"] = "app", "python"
        one["filter"] += 0.1 if rng.random() < 0.1 else 0.0

    rows = requests(all_python)

    assert 0.0 == filters.one_kind_of_agent(evidence(rows)).value
    assert "regex_backtracking" != verdict(rows)["slug"]


def test_prometheus_alone_tells_the_family(evidence: Callable[..., Evidence], growing: Callable[..., Any]) -> None:
    """Without rows the histogram by family gives the same signs; devices are not told apart."""
    series = {
        signals.FILTER_BUCKET: tuple(
            growing({"agent_family": family, "le": bound}, 7.0, rate)
            for family, rates in {"safari_ios": (6.0, 7.0), "chrome": (13.0, 13.0)}.items()
            for bound, rate in zip(("0.02", "+Inf"), rates, strict=True)
        ),
        signals.FILTER_SUM: (growing({"agent_family": "safari_ios"}, 0.01, 0.14),),
        signals.CPU: (growing({}, 0.1, 0.22),),
    }
    known = evidence(None, series)

    assert filters.one_kind_of_agent(known).value == pytest.approx(1.0, abs=0.01)
    assert "safari_ios" in filters.one_kind_of_agent(known).detail
    assert float(filters.computing_share(known).value or 0) > 0.5
    assert "prometheus" == filters.busy_share(known).source


def test_a_service_without_these_stages_cannot_be_seen(
    requests: Callable[..., Any], evidence: Callable[..., Evidence]
) -> None:
    """A foreign service's rows know nothing of filters: no sign, rather than its whole latency."""
    known = evidence(requests(backtracking(), stages=("network.receive", "network.send")))

    assert filters.busy_share(known).value is None


@pytest.mark.parametrize("name", filters.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, and a sentence."""
    found = getattr(filters, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"filters.{name}" == found.step
