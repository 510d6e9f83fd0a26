"""Weights, conditions, what was not seen, and causes before their victims."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.evidence import StepResult
from runbooks.expectation import Expectation
from runbooks.pages import Page, Step, load_pages
from runbooks.scoring import Candidate, rank, score_page

TRUE = Expectation.parse("== true")
BASE = load_pages()["service_down"]


def page(*steps: Step, slug: str = "a", explains: tuple[str, ...] = (), severity: str = "page") -> Page:
    """Return a page with these steps."""
    return replace(BASE, slug=slug, steps=steps, explains=explains, severity=severity)


def step(name: str, weight: float = 1.0, needs: str = "", only_for: bool = False, guard: bool = False) -> Step:
    """Return a step that expects true."""
    return Step(name, TRUE, weight, needs, only_for, guard)


def judged(of: Page, **values: bool | None) -> Candidate:
    """Score a page on given values."""
    return score_page(of, {name: StepResult(name, value, "ring") for name, value in values.items()})


def test_all_that_holds_is_a_full_score() -> None:
    """Everything seen, everything holds."""
    found = judged(page(step("x", 3, "c"), step("y")), x=True, y=True)

    assert (1.0, 1.0, True) == (found.score, found.confidence, found.nameable)


def test_a_condition_that_is_not_met_leaves_a_fifth() -> None:
    """However much else holds, a plainly missing condition rules the cause out."""
    found = judged(page(step("x", 1, "c"), step("y", 9)), x=False, y=True)

    assert 0.18 == pytest.approx(found.score)
    assert not found.nameable
    assert "condition not met: c (x == true)" in found.reasons


def test_what_was_not_seen_costs_confidence_and_not_score() -> None:
    """A step without a value leaves the score alone."""
    found = judged(page(step("x", 1, "c"), step("y", 1)), x=True, y=None)

    assert 1.0 == found.score
    assert 0.75 == pytest.approx(found.confidence)


def test_without_any_condition_seen_nothing_is_claimed() -> None:
    """Consequences alone are no proof while the failure itself cannot be looked at."""
    found = judged(page(step("x", 1, "c"), step("y", 9)), x=None, y=True)

    assert (0.5, 0.0, False) == (found.score, found.confidence, found.nameable)


def test_a_guard_that_holds_decides_nothing_while_the_failures_own_signs_are_not_seen() -> None:
    """An idle process computes little whatever is wrong: without a sign of its own a failure is not named."""
    of = page(step("own", 1, "waits"), step("idle", 9, "not computing", guard=True), step("more", 9))

    blind, seen = judged(of, own=None, idle=True, more=True), judged(of, own=True, idle=True, more=True)

    assert (0.5, 0.0, False) == (blind.score, blind.confidence, blind.nameable)
    assert (1.0, 1.0, True) == (seen.score, seen.confidence, seen.nameable)


def test_a_guard_that_does_not_hold_rules_out() -> None:
    """However plain the signs are."""
    of = page(step("own", 9, "waits"), step("idle", 1, "not computing", guard=True))

    assert 0.18 == pytest.approx(judged(of, own=True, idle=False).score)


FAILURES = {slug: one for slug, one in load_pages().items() if one.kind == "failure"}


def passes(step: Step) -> float | bool | str:
    """Return a value that a step's expectation takes."""
    numbers = (base + off for base in (0.0, *_bounds(step)) for off in (-1e-3, 0.0, 1e-3))
    tried: tuple[float | bool | str, ...] = (True, False, "a line", *numbers)
    return next(value for value in tried if step.expect.judge(value))


def _bounds(step: Step) -> list[float]:
    last = step.expect.text.split()[-1]
    return [] if last in ("true", "false", "present") else [float(last)]


@pytest.mark.parametrize("slug", FAILURES)
def test_no_shipped_page_is_named_while_nothing_that_decides_was_seen(slug: str) -> None:
    """All else holds, with its full weight: guards, consequences and what only speaks for the failure."""
    of = FAILURES[slug]
    blind = {one.run: StepResult(one.run, None if one.decides else passes(one), "ring") for one in of.steps}
    full = {one.run: StepResult(one.run, passes(one), "ring") for one in of.steps}

    assert not score_page(of, blind).nameable
    assert score_page(of, full).nameable


def test_one_step_of_a_group_is_enough() -> None:
    """A condition with several ways to see it holds when one of them does."""
    found = judged(page(step("x", 1, "c"), step("y", 1, "c")), x=False, y=True)

    assert 0.5 == found.score
    assert not any("condition" in reason for reason in found.reasons)


def test_a_step_that_only_speaks_for_a_cause_is_silent_when_it_does_not_hold() -> None:
    """It adds when it holds and costs nothing when it does not."""
    of = page(step("x", 1, "c"), step("y", 1, only_for=True))

    assert (1.0, 1.0) == (judged(of, x=True, y=False).score, judged(of, x=True, y=False).confidence)


@given(
    values=st.lists(st.sampled_from([True, False, None]), min_size=4, max_size=4),
    weights=st.lists(st.integers(1, 9), min_size=4, max_size=4),
)
def test_scores_are_shares_and_more_evidence_for_never_hurts(values: list[bool | None], weights: list[int]) -> None:
    """Score and confidence lie in 0..1; turning a step from False to True raises the score or leaves it."""
    of = page(*(step(f"s{n}", weight, "c" if n < 2 else "", n == 3) for n, weight in enumerate(weights)))
    found = judged(of, **{f"s{n}": value for n, value in enumerate(values)})

    assert 0.0 <= found.confidence <= found.score <= 1.0
    for place, value in enumerate(values):
        if value is False:
            better = judged(of, **{f"s{n}": True if n == place else one for n, one in enumerate(values)})
            assert better.score >= found.score


def test_a_cause_comes_before_the_failure_that_it_explains() -> None:
    """The victim keeps its reasons but is halved and no verdict any more, even when it scores as high."""
    deep, victim = page(step("x", 1, "c"), slug="deep", explains=("victim",)), page(step("x", 1, "c"), slug="victim")

    ordered = rank([judged(victim, x=True), judged(deep, x=True)])

    assert ["deep", "victim"] == [one.page.slug for one in ordered]
    assert (0.5, "deep", False) == (ordered[1].score, ordered[1].explained_by, ordered[1].nameable)


def test_a_cause_that_is_not_named_explains_nothing() -> None:
    """A refuted cause does not hide what it would explain."""
    deep = page(step("x", 1, "c"), slug="deep", explains=("victim",))
    victim = page(step("y", 1, "c"), slug="victim")
    measured = {name: StepResult(name, value, "ring") for name, value in (("x", False), ("y", True))}

    assert "victim" == rank([score_page(deep, measured), score_page(victim, measured)])[0].page.slug


def test_of_two_the_one_that_pages_comes_first() -> None:
    """Severity decides between two failures at once."""
    ticket = page(step("x", 1, "c"), slug="a", severity="ticket")
    pages = page(step("x", 1, "c"), step("y"), slug="b", severity="page")

    assert ["b", "a"] == [one.page.slug for one in rank([judged(ticket, x=True), judged(pages, x=True, y=None)])]


@pytest.mark.parametrize(("score", "confidence"), [(0.6, 0.55), (1.0, 0.61)])
def test_a_half_explained_page_does_not_come_before_a_fully_explained_ticket(score: float, confidence: float) -> None:
    """Severity decides between two failures, not between a cause and what merely fits a little, or was half seen."""
    ticket = page(step("x", 1, "c"), slug="ticket", severity="ticket")
    pages = page(step("x", 1, "c"), slug="pages", severity="page")
    half = replace(judged(pages, x=True), score=score, confidence=confidence)

    assert half.nameable
    assert ["ticket", "pages"] == [one.page.slug for one in rank([half, judged(ticket, x=True)])]
