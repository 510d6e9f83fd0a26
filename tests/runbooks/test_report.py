"""The report for the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from runbooks.engine import triage
from runbooks.report import render
from runbooks.sources import Sources

WORLDS: list[dict[str, Any]] = [
    {"block_seconds": 0.2, "block_share": 0.05},
    {"dead_after": 0.0, "during": 35.0},
    {"fail_share": 0.5, "fail_release": "1.1"},
    {},
    {"rate": 0.0},
]


def text(here: Any, sources: Sources | None = None) -> str:
    """Triage a world and render the report."""
    return render(triage(sources or here.sources(), at=here.until, clock=lambda: here.until))


@pytest.mark.parametrize("options", WORLDS)
def test_any_result_can_be_shown(world: Callable[..., Any], options: dict[str, Any]) -> None:
    """Named or not, with or without sources: a report that ends in one newline and holds no None."""
    here = world(**options)
    full = here.sources()
    for sources in (full, Sources(full.prometheus), Sources(None, full.rows), Sources()):
        shown = text(here, sources)

        assert shown.endswith("\n")
        assert "None" not in shown


def test_the_verdict_comes_first_then_impact(world: Callable[..., Any]) -> None:
    """A person reads cause, impact, evidence with expectations, runbook and next command, in this order."""
    shown = text(world(block_seconds=0.2, block_share=0.05))
    order = [
        "event_loop_blocked  (layer runtime",
        "Impact",
        "What differs",
        "Evidence",
        "> 0.03",
        "Candidates",
        "Runbook:",
    ]

    assert order == sorted(order, key=shown.index)
    assert "nothing differs: all requests are hit alike" in shown
    assert "inferdeck trace --trace " in shown


def test_an_abstention_says_so_and_where_to_look(world: Callable[..., Any]) -> None:
    """No cause: the first line says it, and the most unusual signals follow."""
    shown = text(world(fail_share=0.5, fail_release="1.1"))

    assert shown.startswith("NO CAUSE NAMED")
    assert "failed share" in shown
    assert "client_release = 1.1" in shown


def test_missing_sources_are_shown_with_their_cost(world: Callable[..., Any]) -> None:
    """What could not be read, and what that means."""
    assert "missing: prometheus: not configured. Cost: " in text(world(), Sources(None, world().requests()))


def test_a_service_that_is_dead_is_told_by_its_missing_requests_first(world: Callable[..., Any]) -> None:
    """No requests since then, so many before: a share of the few that ended at the onset would sound healthy."""
    dead = text(world(dead_after=3.0, during=60.0)).splitlines()
    blocked = text(world(block_seconds=0.2, block_share=0.05))

    first = dead[dead.index("Impact") + 1]
    assert first.startswith("  0 requests since 20")
    assert first.endswith("/s before")
    assert "0 requests since" not in blocked
    assert "0 requests since" not in text(world(rate=0.0))


def test_an_abstention_says_what_the_best_candidate_lacked_and_leaves_out_the_hopeless(
    world: Callable[..., Any],
) -> None:
    """Which condition, with its bound; no list of causes that nothing speaks for; what was not seen in one line."""
    lines = text(world(fail_share=0.5, fail_release="1.1")).splitlines()
    start = lines.index("Candidates")

    assert lines[start + 1].startswith("  1. ")
    assert "not named: condition not" in lines[start + 2]
    assert "(" in lines[start + 2]
    assert not [line for line in lines if "score 0.00" in line]
    assert 1 == len([line for line in lines if re.fullmatch(r"  could not be seen: \d+ steps \(.*\)", line)])
