from __future__ import annotations

from pathlib import Path
from time import perf_counter_ns

import pytest

from exporters.follow import Follower
from exporters.gauges import service_gauges
from exporters.lookup import errors, find_session, slowest
from exporters.rows import load_rows
from exporters.state import State
from probes.intake import Intake
from probes.ringfile import open_ring
from probes.settings import Identity, RecorderSettings

SESSION = "session-0123456789ab"
HOUR_NS = 3_600_000_000_000
NOON_NS = 1_790_000_000_000_000_000
SCOPE = {"type": "http", "method": "GET", "headers": [(b"x-session-id", SESSION.encode())]}


class Clock:
    """A wall clock that somebody sets while it runs."""

    def __init__(self) -> None:
        self.set_to_ns = NOON_NS
        self._set_at = perf_counter_ns()

    def step(self, by_ns: int) -> None:
        """Set the clock forward, or back."""
        self.set_to_ns = self() + by_ns
        self._set_at = perf_counter_ns()

    def __call__(self) -> int:
        """Return the time, ns since 1970."""
        return self.set_to_ns + perf_counter_ns() - self._set_at


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS, -NOON_NS], ids=["forward", "back", "to 1970"])
def test_a_clock_that_is_set_under_a_request_changes_no_duration_and_hides_nothing(
    tmp_path: Path, step_ns: int
) -> None:
    """Durations are of a steady clock, rows bear the new time from the next look on, ages are never negative."""
    settings = RecorderSettings(ring_rows=64, open_slots=8, sensors=False)
    ring = open_ring(tmp_path / "rings", "clocks", Identity(), settings, lambda _reason: None)
    clock = Clock()
    intake = Intake(ring, clock)
    before = intake.begin(SCOPE)
    under = intake.begin(SCOPE)
    intake.finish(before, SCOPE, 200, False)
    clock.step(step_ns)
    intake.finish(under, SCOPE, 500, False)
    intake.anchor()
    intake.finish(intake.begin(SCOPE), SCOPE, 200, False)
    intake.begin(SCOPE)  # and one in flight
    now = clock()
    follower = Follower(tmp_path / "rings", State(), without_state=False, now_unix_ns=clock)
    follower.tick()
    gauges = service_gauges(follower.followed.values(), 0, now - 2 * HOUR_NS)
    table = load_rows(tmp_path / "rings")
    views = find_session(tmp_path / "rings", SESSION, now_unix_ns=max(0, now - 2 * HOUR_NS))
    slow = slowest(tmp_path / "rings", 9, now_unix_ns=0)
    failed = errors(tmp_path / "rings", now_unix_ns=0)
    counted = follower.state.totals.value("telemetry_rows_read_total")
    follower.close()
    ring.close()

    assert (table["duration_ns"] < HOUR_NS // 60).all()
    starts = dict(zip(table["seq"].tolist(), table["start_unix_ns"].tolist(), strict=True))
    assert abs(starts[2] - starts[0] - step_ns) < HOUR_NS // 60
    assert 3 == counted
    assert (4, 4, 1) == (len(views), len(slow), len(failed))
    assert all(view.duration_s >= 0 for view in [*views, *slow])
    assert {(): 0.0} == gauges["model_oldest_request_age_seconds"]
