"""What the files tell of workers' lives: starts by phase, deaths without a last word, and who lived through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.lives import died, lived_through, start_of, starts
from runbooks.rows import RingLife, Rows

NOW = 1_780_000_000.0
QUICK = {"import": 1.0, "starting": 0.1, "loading_model": 0.5}


def life(name: str = "a", *, started: float = -100.0, sign: float = 0.0, alive: bool = True, **status: Any) -> RingLife:
    """Return a worker whose times count from NOW."""
    return RingLife(name, "0", alive, NOW + started, NOW + sign, status={"phase": "ready", "ready": True, **status})


def rows(*rings: RingLife) -> Rows:
    """Return no requests, and these workers."""
    none: Any = np.zeros(0)
    text: Any = np.zeros(0, dtype=object)
    return Rows(
        none, none, none.astype(np.int64), text, none.astype(np.uint64), text.copy(), text.copy(), rings=tuple(rings)
    )


def test_only_phases_before_ready_make_up_a_start() -> None:
    """Time in ready, after the stop, and waiting for a missing model is none of it."""
    later = {"ready": 900.0, "stopped": 3.0, "model_missing": 60.0, "model_damaged": 1.0, "model_failed": 1.0}

    found = start_of(life(phases=QUICK | later))

    assert found is not None
    assert found.seconds == pytest.approx(1.6)
    assert ("import", 1.0, True) == (found.phase, found.phase_seconds, found.ready)
    assert found.began_s == NOW - 101.0


@pytest.mark.parametrize("phases", [None, "import", {}, {"ready": 3.0}, {"import": "1"}, {"import": True}])
def test_a_page_without_phases_tells_no_start(phases: Any) -> None:
    """Another version's page is no error."""
    assert start_of(life(phases=phases)) is None


def test_a_start_that_goes_on_is_not_ready() -> None:
    """The page says so itself."""
    found = start_of(life(phases={"import": 1.0, "loading_model": 20.0}, phase="loading_model", ready=False))

    assert found is not None
    assert not found.ready
    assert "loading_model" == found.phase


def test_imports_before_the_first_recorder_are_not_known() -> None:
    """A recorder that is attached to an old process is no import of an hour; a later start can be compared."""
    old = life("old", started=-50.0, phases=QUICK | {"import": 3600.0})
    new = life("new", started=-5.0, phases=QUICK | {"import": 20.0})

    assert [pytest.approx(0.6), pytest.approx(20.6)] == [one.seconds for one in starts(rows(new, old))]


def test_who_died_is_told_from_who_stopped_lives_or_is_frozen() -> None:
    """Only an owner that is gone without having said so, in the time looked at, has died."""
    rings = (
        life("killed", alive=False, sign=-5.0),
        life("stopped", alive=False, sign=-5.0, phase="stopped"),
        life("frozen", sign=-5.0),
        life("long ago", alive=False, sign=-500.0),
        RingLife("mute", "0", False, NOW - 100.0, NOW - 5.0),
    )

    assert ["killed"] == [ring.ring for ring in died(rows(*rings), NOW - 60.0, NOW)]


def test_only_workers_before_and_well_after_a_death_lived_through_it() -> None:
    """One that died in the same second, and the one that takes its place, did not."""
    rings = (life("other"), life("too", alive=False, sign=-9.5), life("heir", started=-8.0))

    assert ["other"] == [ring.ring for ring in lived_through(rows(*rings), NOW - 10.0)]


@given(st.dictionaries(st.text(max_size=8), st.floats(0.0, 1e6), max_size=8))
def test_a_start_is_as_long_as_its_phases_together(phases: dict[str, float]) -> None:
    """Whatever an app calls its phases, the longest is one of them and the sum is the sum."""
    counted = {name: seconds for name, seconds in phases.items() if name not in ("ready", "stopped")}
    found = start_of(life(phases=phases))

    if found is None:
        assert not counted
    else:
        assert sum(counted.values()) == pytest.approx(found.seconds)
        assert max(counted.values()) == found.phase_seconds == counted[found.phase]
