"""Scores are plain arithmetic over runs, with abstained runs in the denominator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferdeck.drill.score import Fault, Judgement, credited, judge, missed, scores

SLUGS = st.sampled_from(["event_loop_blocked", "service_down", "memory_leak"])


def judgement(verdict: str | None, rank: int | None, confidence: float = 0.9) -> Judgement:
    """Return a judgement; None abstained."""
    return Judgement(verdict, "runtime" if verdict else None, confidence if verdict else 0.0, rank, verdict is None)


def fault(told: Judgement, blind: Judgement | None = None, *, simulated: bool = False) -> Fault:
    """Return a run of event_loop_blocked that was detected."""
    blind = told if blind is None else blind
    return Fault("event_loop_blocked", "runtime", simulated, 1, "EventLoopBlocked", 30.0, 31.0, told, blind)


RIGHT = judgement("event_loop_blocked", 1)
SECOND = judgement("service_down", 2)
ABSTAINED = judgement(None, 1)

judgements = st.builds(judgement, st.none() | SLUGS, st.none() | st.integers(1, 5), st.floats(0, 1))
faults = st.lists(st.builds(fault, judgements, judgements, simulated=st.booleans()), max_size=20)


def test_scores_of_a_known_set() -> None:
    """One right, one second, one abstained, one right but simulated."""
    found = scores([fault(RIGHT), fault(SECOND), fault(ABSTAINED, RIGHT), fault(RIGHT, simulated=True)])

    assert pytest.approx(1 / 3, abs=1e-4) == found["top1"]
    assert pytest.approx(2 / 3, abs=1e-4) == found["top1_blind"]
    # within the first 1, 2, 3 places: 1, 2, 2 of 3 runs
    assert pytest.approx(5 / 9, abs=1e-4) == found["avg3"]
    assert pytest.approx(2 / 3, abs=1e-4) == found["layer_top1"]
    assert pytest.approx(1 / 3, abs=1e-4) == found["abstain_rate"]
    assert pytest.approx(1 / 3, abs=1e-4) == found["wrong_and_confident"]
    assert {"top1": 1.0, "runs": 1} == found["simulated"]


def test_without_runs_there_is_no_score() -> None:
    """Absence is None, never 0."""
    found = scores([])

    assert [None] * 6 == [
        found[key] for key in ("top1", "top1_blind", "avg3", "layer_top1", "abstain_rate", "wrong_and_confident")
    ]


@settings(deadline=None)  # a busy machine is no failure
@given(faults)
def test_scores_are_shares_and_keep_their_order(runs: list[Fault]) -> None:
    """Every score is within 0..1, a wrong and confident run is no right one, and the order of runs does not matter."""
    found = scores(runs)
    shares = [found[key] for key in ("top1", "top1_blind", "avg3", "layer_top1", "abstain_rate", "wrong_and_confident")]

    assert all(share is None or 0 <= share <= 1 for share in shares)
    assert scores(runs[::-1]) == found
    if found["top1"] is not None:
        assert found["top1"] + found["abstain_rate"] + found["wrong_and_confident"] <= 1.0002
        assert 3 * found["avg3"] >= found["top1"] - 1e-3


@settings(deadline=None)  # a busy machine is no failure
@given(faults)
def test_an_abstained_run_never_raises_a_score(runs: list[Fault]) -> None:
    """Adding a run that abstains lowers top1 or leaves it at 0."""
    before, after = scores(runs), scores([*runs, fault(ABSTAINED)])

    assert after["top1"] <= (before["top1"] or 0) + 1e-4


def test_an_abstained_triage_has_a_rank_but_no_verdict() -> None:
    """What triage shows while abstaining is kept as a rank, and is no verdict."""
    answer: dict[str, Any] = {
        "abstained": True,
        "verdict": {"slug": None, "layer": None, "confidence": 0.2},
        "candidates": [{"slug": "service_down"}, {"slug": "event_loop_blocked"}],
    }

    assert Judgement(None, None, 0.0, 2, True) == judge(answer, "event_loop_blocked")
    assert Judgement() == judge(None, "event_loop_blocked")


def test_a_verdict_is_read_with_its_layer_and_rank() -> None:
    """A named cause is compared by slug and layer."""
    answer = {
        "abstained": False,
        "verdict": {"slug": "service_down", "layer": "runtime", "confidence": 0.75},
        "candidates": [{"slug": "service_down"}],
    }

    assert Judgement("service_down", "runtime", 0.75, 1, False) == judge(answer, "service_down")
    assert judge(answer, "event_loop_blocked").rank is None


def test_what_counts_as_a_miss() -> None:
    """Undetected, wrongly named and blindly missed runs are misses; --blind looks at the blind verdict alone."""
    undetected = replace(fault(RIGHT), alert=None)

    assert not missed(fault(RIGHT), blind_only=False)
    assert missed(undetected, blind_only=False)
    assert not missed(undetected, blind_only=True)
    assert missed(fault(RIGHT, ABSTAINED), blind_only=False)
    assert missed(fault(SECOND, RIGHT), blind_only=False)
    assert not missed(fault(SECOND, RIGHT), blind_only=True)


def test_an_alert_that_fired_before_the_cause_detects_nothing() -> None:
    """It would count as detected in no time; any other that fired early makes the run a miss too, and it is told."""
    fired = ("EventLoopBlocked", 31.0)
    early = [{"alertname": "EventLoopBlocked", "labels": {"slug": "event_loop_blocked"}}]
    run = replace(fault(RIGHT), fired_before=("DiskFull",))

    assert credited(fired, early, "event_loop_blocked") is None
    assert fired == credited(fired, early, "service_down") == credited(fired, [], "event_loop_blocked")
    assert missed(run, blind_only=False)
    assert missed(run, blind_only=True)
    assert ["DiskFull"] == run.to_json()["fired_before"]
