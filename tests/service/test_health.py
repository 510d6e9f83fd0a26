"""Liveness and readiness as documents."""

from __future__ import annotations

import pytest

from service.health import liveness, readiness
from service.lifecycle import PHASES, State


@pytest.mark.parametrize(("age", "status"), [(0.0, 200), (10.0, 200), (10.001, 503)])
def test_liveness_ends_at_the_limit(age: float, status: int) -> None:
    """At the limit it still lives; over it not."""
    told, document = liveness(age, 10.0, 7)
    assert (told, document["loop_tick_age_s"], document["pid"]) == (status, age, 7)


def test_every_phase_has_a_document() -> None:
    """Only ready is 200, and every failure has its mend."""
    for phase in PHASES:
        status, document = readiness(State(phase, "why"), 7)
        assert (status == 200) == (phase == "ready")
        assert document["phase"] == phase
        assert ("mend" in document) == phase.startswith("model_")
