"""From judged steps to ranked causes: weights, conditions, what was not seen, the deepest cause before its victims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from runbooks.evidence import StepResult
from runbooks.pages import Page, Step

__all__ = ["LEAST_CONFIDENCE", "LEAST_SCORE", "NOT_MET", "NOT_SEEN", "Candidate", "rank", "score_page"]

# A verdict needs most of the weight that could be seen, and enough of it seen. Below, triage abstains.
LEAST_SCORE: Final = 0.6
LEAST_CONFIDENCE: Final = 0.5
# How the reasons of a candidate begin that tell of a condition without which it cannot be the cause.
NOT_MET: Final = "condition not met"
NOT_SEEN: Final = "condition not seen"
# A condition that is plainly not met leaves a fifth: low enough to lose to anything, still shown with its reasons.
REFUTED_FACTOR: Final = 0.2
# What cannot be looked at at all stays below a verdict's score.
UNSEEN_SCORE: Final = 0.5
# Each condition that nobody could look at takes this from the confidence, not from the score.
UNSEEN_FACTOR: Final = 0.9
# The share of confidence that a cause keeps when almost nothing of it could be seen.
BLIND_SHARE: Final = 0.5
# A cause that is named as another's consequence ranks behind it.
EXPLAINED_FACTOR: Final = 0.5

# What lies this far below the best explained cause is not a second failure of the same weight, whatever it pages.
CLEARLY_WORSE: Final = 0.3

_SEVERITY_ORDER: Final = {"page": 0, "ticket": 1, "info": 2}


@dataclass(frozen=True)
class Candidate:
    """One failure that could be the cause.

    Attributes:
        page: Its runbook.
        score: How well what was seen fits, 0..1.
        confidence: The score lowered by what could not be seen, 0..1; 0 when no deciding condition was seen to hold.
        reasons: One sentence per step that speaks for or against it, heaviest first.
        steps: Its judged steps.
        explained_by: Slug of the deeper cause; empty when none.
    """

    page: Page
    score: float
    confidence: float
    reasons: tuple[str, ...]
    steps: tuple[StepResult, ...]
    explained_by: str = ""

    @property
    def nameable(self) -> bool:
        """Whether it may be the verdict."""
        return self.score >= LEAST_SCORE and self.confidence >= LEAST_CONFIDENCE and not self.explained_by


def score_page(page: Page, measured: Mapping[str, StepResult]) -> Candidate:
    """Judge a page's steps and weigh them.

    score = weight of steps that hold / weight of steps that could be seen; a step that only speaks for the failure
    counts when it holds. A group of conditions (needs) is met when one of its steps holds. Whatever the rest says, a
    verdict rests on a condition that is no guard and was seen to hold.

    Args:
        page: The runbook.
        measured: Step name -> what it measured.
    """
    judged = [
        (
            step,
            replace(measured[step.run], expected=step.expect.text, holds=step.expect.judge(measured[step.run].value)),
        )
        for step in page.steps
    ]
    groups: dict[str, list[bool | None]] = {}
    held = seen = every = 0.0
    for step, result in judged:
        if step.needs:
            groups.setdefault(step.needs, []).append(result.holds)
        counts = result.holds or (result.holds is not None and not step.only_for)
        held += step.weight if result.holds else 0.0
        seen += step.weight if counts else 0.0
        every += step.weight if counts or not step.only_for else 0.0
    refuted = [name for name, states in groups.items() if True not in states and False in states]
    unseen = [name for name, states in groups.items() if all(state is None for state in states)]
    score = (held / seen if seen else 0.0) * (REFUTED_FACTOR if refuted else 1.0)
    confidence = (
        score * (BLIND_SHARE + (1 - BLIND_SHARE) * (seen / every if every else 0.0)) * UNSEEN_FACTOR ** len(unseen)
    )
    if not any(result.holds for step, result in judged if step.decides):
        # What follows from a failure, and what health meets as well, is no sign of it while none of its own is seen.
        score, confidence = min(score, UNSEEN_SCORE), 0.0
    return Candidate(page, score, confidence, _reasons(judged, refuted, unseen), tuple(one for _, one in judged))


def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, best first; what another nameable one explains comes behind it.

    Nearly equal ones go by severity: of two failures at once the one that pages is named, the other stays next to it.
    One that is clearly worse explained than the best comes behind it, whatever it pages.
    """
    named = {one.page.slug: one for one in candidates if one.nameable}
    ordered = []
    for one in candidates:
        deeper = next((n.page.slug for n in named.values() if one.page.slug in n.page.explains and n is not one), "")
        ordered.append(
            replace(
                one,
                explained_by=deeper,
                score=one.score * EXPLAINED_FACTOR,
                confidence=one.confidence * EXPLAINED_FACTOR,
            )
            if deeper
            else one
        )
    best = max((one.confidence for one in ordered if one.nameable), default=0.0)
    return sorted(
        ordered,
        key=lambda one: (
            not one.nameable,
            one.confidence < best - CLEARLY_WORSE,
            _SEVERITY_ORDER.get(one.page.severity, 9) if one.nameable else 0,
            -round(one.confidence, 6),
            -one.score,
            one.page.slug,
        ),
    )


def _reasons(
    judged: Sequence[tuple[Step, StepResult]], refuted: Sequence[str], unseen: Sequence[str]
) -> tuple[str, ...]:
    reasons = [f"for: {one.step}: {one.detail}" for _, one in judged if one.holds]
    reasons += [
        f"against: {one.step}: {one.detail} (expected {one.expected})" for _, one in judged if one.holds is False
    ]
    reasons += [f"cannot see: {one.step}: {one.detail}" for _, one in judged if one.holds is None]
    reasons += [f"{NOT_MET}: {name}{_asked(judged, name)}" for name in refuted]
    reasons += [f"{NOT_SEEN}: {name}{_asked(judged, name)}" for name in unseen]
    return tuple(reasons)


def _asked(judged: Sequence[tuple[Step, StepResult]], name: str) -> str:
    """Return what a condition asks for, with the bound of each of its steps."""
    steps = [f"{one.step} {one.expected}" for step, one in judged if step.needs == name]
    return f" ({' or '.join(steps)})"
