"""A clean time is judged by what was measured in it; what nobody could tell is never a 0."""

from __future__ import annotations

from typing import Any

import pytest

from inferdeck.drill.clean import rules_loaded, scrapes
from inferdeck.drill.clean_score import not_clean, shipped_rules, surge_ratio
from inferdeck.stack.ports import free_ports

GOOD: dict[str, Any] = {
    "rules_loaded": 11,
    "rules_shipped": 11,
    "failed_scrapes": 0,
    "watchdog_firing": True,
    "false_alerts": 0,
    "false_verdicts": 0,
    "proof": {"slug": "event_loop_blocked", "named": True},
}


def test_the_surge_is_measured() -> None:
    """45 s with 8,190 requests beside 20 a second are 9.1 times; without a surge there is no figure."""
    other = {"slug": "deploy_restart", "seconds": 60.0, "requests": 1200}

    assert 9.1 == surge_ratio([other, {"slug": "traffic_surge", "seconds": 45.0, "requests": 8190}], 20.0)
    assert surge_ratio([other], 20.0) is None
    assert surge_ratio([], 20.0) is None


def test_a_clean_time_is_clean() -> None:
    """Nothing to say about it."""
    assert [] == not_clean(GOOD)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"false_alerts": 1}, "alerts fired"),
        ({"false_verdicts": 1}, "something was named"),
        ({"watchdog_firing": False}, "the watchdog was never seen firing"),
        ({"rules_loaded": 10}, "10 of 11 shipped alerts were loaded"),
        ({"rules_loaded": None}, "an unknown number of 11 shipped alerts were loaded"),
        ({"failed_scrapes": 3}, "3 scrapes failed outside of restarts"),
        ({"failed_scrapes": None}, "an unknown number of scrapes failed outside of restarts"),
        ({"proof": {"slug": "x", "named": False}}, "the failure at its end was not named"),
    ],
)
def test_each_thing_that_spoils_it_is_told(change: dict[str, Any], sentence: str) -> None:
    """One sentence for one thing, and what is unknown spoils it as well."""
    assert [sentence] == not_clean(GOOD | change)


def test_the_shipped_alerts_are_counted_in_their_files() -> None:
    """As many as the catalogue has."""
    from alerts.load import load_catalogue
    from inferdeck.version import ROOT

    assert len(load_catalogue(ROOT / "alerts" / "catalogue")) == shipped_rules()


def test_scrapes_and_rules_that_nobody_can_tell_are_none(peer: tuple[str, dict[str, Any]]) -> None:
    """A Prometheus that is away, or that never scraped, has not scraped without failure."""
    url, answers = peer
    (port,) = free_ports(1)
    unknown = {"failed_scrapes": None, "failed_scrapes_of_restarts": 0}
    restart = [{"slug": "deploy_restart", "begin_s": 1.0, "seconds": 5.0}]

    assert (unknown, None) == (scrapes(f"http://127.0.0.1:{port}", 0.0, []), rules_loaded(f"http://127.0.0.1:{port}"))
    answers["/api/v1/query"] = {"data": {"result": []}}
    assert dict.fromkeys(unknown) == scrapes(url, 0.0, restart)
    answers["/api/v1/query"] = {"data": {"result": [{"value": [1, "4"]}]}}
    assert {"failed_scrapes": 0, "failed_scrapes_of_restarts": 4} == scrapes(url, 0.0, restart)
    assert {"failed_scrapes": 4, "failed_scrapes_of_restarts": 0} == scrapes(url, 0.0, [])
    answers["/api/v1/rules"] = {"data": {"groups": [{"rules": [{}, {}]}, {"rules": [{}]}]}}
    assert 3 == rules_loaded(url)
