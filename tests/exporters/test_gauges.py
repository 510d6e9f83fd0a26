from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from exporters.follow import Follower
from exporters.gauges import Gauges, service_gauges
from exporters.names import METRICS
from exporters.state import State

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

SECOND = 1_000_000_000


def gauges_of(ring_dir: Path, now: int) -> Gauges:
    """The gauges of a folder."""
    follower = Follower(ring_dir, State(), without_state=False)
    follower.tick()
    try:
        return service_gauges(follower.followed.values(), len(follower.unreadable), now)
    finally:
        follower.close()


def test_an_empty_folder_knows_only_counts(ring_dir: Path) -> None:
    """Nothing in flight is 0; what no worker said is absent, not 0."""
    gauges = gauges_of(ring_dir, 5)
    assert gauges["model_requests_in_flight"] == {(): 0.0}
    assert gauges["telemetry_rings"] == {("live",): 0.0, ("last_flight",): 0.0, ("unreadable",): 0.0}
    assert "runtime_threads" not in gauges
    assert gauges["runtime_heartbeat_age_seconds"] == {}


def test_live_workers_are_summed_and_the_worst_is_shown(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Memory and threads add up; ages and shares are those of the worst worker; dead ones are left out."""
    now = 100 * SECOND
    for number, flight in enumerate((fly(), fly(), fly())):
        flight.status(
            written_unix_ns=now - number * SECOND,
            loop_tick_age_s=0.25,
            rss_bytes=100,
            threads=3,
            fds=10 * (number + 1),
            fd_limit=100,
            phases={"import": 0.5 + number},
        )
        if number == 2:
            flight.begin()
            flight.die()
    gauges = gauges_of(ring_dir, now)
    assert gauges["runtime_process_resident_memory_bytes"] == {(): 200.0}
    assert gauges["runtime_threads"] == {(): 6.0}
    assert gauges["runtime_file_descriptors_used_ratio"] == {(): 0.2}
    assert gauges["runtime_heartbeat_age_seconds"] == {("thread",): 1.0, ("loop",): 1.25}
    assert gauges["runtime_start_phase_seconds"] == {("import",): 1.5}
    assert gauges["model_worker_up"] == {("0",): 1.0, ("1",): 1.0, ("2",): 0.0}
    assert gauges["model_requests_in_flight"] == {(): 0.0}
    assert gauges["telemetry_rings"][("last_flight",)] == 1.0
    assert set(gauges) <= {metric.name for metric in METRICS.values() if metric.kind == "gauge"}


def test_requests_in_flight_and_the_oldest_age(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Open slots of live workers are in flight; the age is that of the oldest."""
    first, second = fly(), fly()
    first.begin()
    first.begin()
    second.begin()
    follower = Follower(ring_dir, State(), without_state=False)
    follower.tick()
    oldest = min(int(one.open_starts.min()) for one in follower.followed.values())
    gauges = service_gauges(follower.followed.values(), 0, oldest + 7 * SECOND)
    assert gauges["model_requests_in_flight"] == {(): 3.0}
    assert gauges["model_oldest_request_age_seconds"] == {(): 7.0}


def test_a_worker_that_stopped_cleanly_is_not_down(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Scaling down, or stopping the service, leaves no worker at 0; a kill does."""
    stopped, killed = fly(), fly()
    stopped.status(phase="stopped")
    killed.status(phase="ready")
    stopped.die()
    killed.die()
    assert gauges_of(ring_dir, 1)["model_worker_up"] == {("1",): 0.0}


def test_a_worker_number_that_is_taken_over_is_up(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """After a restart the number belongs to the new worker; the old one's file is a last flight."""
    fly().die()
    fly()
    assert gauges_of(ring_dir, 1)["model_worker_up"] == {("0",): 1.0}


def test_threads_that_stand_are_summed_over_the_workers_that_tell(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """A page of an older version says nothing of them; what cannot be read is left out, never 0."""
    for flight, standing in ((fly(), {"lock": 2, "call": 1}), (fly(), {"lock": 3, "call": "?"}), (fly(), None)):
        flight.status(standing=standing) if standing else flight.status(threads=1)

    assert {("lock",): 5.0, ("call",): 1.0} == gauges_of(ring_dir, SECOND)["runtime_standing_threads"]


def test_the_longest_wait_for_a_thread_is_shown(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Of the workers that have an executor; one without says nothing of it."""
    for flight, wait in ((fly(), 0.25), (fly(), 2.5), (fly(), None)):
        flight.status(executor={"wait_s": wait}) if wait else flight.status(threads=1)

    assert {(): 2.5} == gauges_of(ring_dir, SECOND)["runtime_executor_wait_seconds"]
