from __future__ import annotations

import contextlib
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from exporters.follow import Follower
from exporters.state import State, load_state, save_state
from exporters.totals import Totals

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

READ, LOST = "telemetry_rows_read_total", "telemetry_rows_lost_total"


def follower_of(ring_dir: Path, state: State | None = None, **options: Any) -> Follower:
    """A follower that knows of an empty folder, or of *state*."""
    return Follower(ring_dir, state or State(), **{"without_state": False, **options})


def unfinished(follower: Follower) -> dict[str, int]:
    """Requests that never ended, by stage."""
    series = follower.state.totals.counters["model_unfinished_requests_total"]
    return {stage: count for (stage,), count in series.items() if count}


def test_rows_of_several_workers_add_up(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Each row of each worker is counted once, however often the follower looks."""
    follower = follower_of(ring_dir)
    flights = [fly(), fly(), fly()]
    for turn in range(4):
        for number, flight in enumerate(flights):
            for _ in range(number + turn):
                flight.row()
        follower.tick()
        follower.tick()
    expected = sum(number + turn for turn in range(4) for number in range(3))
    assert expected == follower.state.totals.value(READ)
    assert expected == follower.state.totals.value("model_requests_total", "/v1/sentiment", "ok")
    follower.close()


def test_a_missing_folder_is_waited_for(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Without a folder there is nothing; once it comes, its rows are counted from the first."""
    follower = follower_of(ring_dir, without_state=True)
    follower.tick()
    fly().row()
    follower.tick()
    assert follower.state.totals.value(READ) == 1
    assert follower.state.totals.value(LOST, "no_state") == 0


def test_overwritten_rows_are_counted_as_lost(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Read and lost rows together are the rows written."""
    follower = follower_of(ring_dir)
    flight = fly(ring_rows=16)
    flight.row()
    follower.tick()
    for _ in range(50):
        flight.row()
    follower.tick()
    assert follower.state.totals.value(READ) == 1 + 16
    assert follower.state.totals.value(LOST, "overwritten") == 50 - 16


def test_a_torn_row_is_counted_and_skipped(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """A row whose CRC is wrong costs that row."""
    follower = follower_of(ring_dir)
    flight = fly()
    for _ in range(3):
        flight.row()
    layout = flight.writer.layout
    flight.writer.buffer[layout.ring + layout.row_bytes + 40] ^= 0xFF
    follower.tick()
    assert (follower.state.totals.value(READ), follower.state.totals.value(LOST, "torn")) == (2, 1)


def test_a_restart_neither_loses_nor_counts_twice(tmp_path: Path, ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Totals go on from the saved state: rows written while nobody looked are counted, old ones are not again."""
    flight, path = fly(), tmp_path / "state"
    first = follower_of(ring_dir)
    flight.row()
    flight.status(cpu_s=1.0)
    first.tick()
    save_state(path, first.state)
    first.close()
    flight.row()
    flight.status(cpu_s=1.5)
    late = fly()
    late.row()
    second = follower_of(ring_dir, load_state(path))
    second.tick()
    assert second.state.totals.value(READ) == 3
    assert second.state.totals.value("runtime_process_cpu_seconds_total") == 1.5
    assert second.state.totals.value(LOST, "no_state") == 0


def test_a_kill_after_the_last_save_comes_to_the_same_totals(
    tmp_path: Path, ring_dir: Path, fly: Callable[..., Flight]
) -> None:
    """What was counted and not saved is counted again, to the very same figures, sums included."""
    flight, path = fly(), tmp_path / "state"
    first = follower_of(ring_dir)
    flight.row(duration_ns=1_234_567, confidence=0.1)
    first.tick()
    save_state(path, first.state)
    for number in range(7):
        flight.row(duration_ns=1_000_001 + number, confidence=0.1 * number, stages={"model.forward": (1, 10**number)})
        first.tick()
    killed = first.state.totals
    second = follower_of(ring_dir, load_state(path))
    second.tick()
    assert killed == second.state.totals


def test_without_state_counting_starts_at_the_head(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """What was there before is skipped and counted as such; what comes later is counted, new workers from row 0."""
    old, dead = fly(), fly()
    for _ in range(5):
        old.row()
    old.status(cpu_s=100.0)
    dead.row()
    dead.begin()
    dead.die()
    follower = follower_of(ring_dir, without_state=True)
    follower.tick()
    assert follower.state.totals.value(LOST, "no_state") == 6
    assert follower.state.totals.value(READ) == 0
    assert unfinished(follower) == {}
    old.row()
    old.status(cpu_s=101.0)
    fly().row()
    follower.tick()
    assert follower.state.totals.value(READ) == 2
    assert follower.state.totals.value("runtime_process_cpu_seconds_total") == 1.0


def test_a_dead_worker_is_drained_and_keeps_its_totals(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Rows and status that nobody had read before the kill are counted; the totals stay when the file goes."""
    follower = follower_of(ring_dir, last_flight_files=0)
    flight, other = fly(), fly()
    other.row()
    follower.tick()
    flight.row()
    flight.status(cpu_s=2.0)
    flight.die()
    follower.tick()
    assert not flight.path.exists()
    assert other.path.exists()
    for _ in range(2):
        follower.tick()
        assert follower.state.totals.value(READ) == 2
        assert follower.state.totals.value("runtime_process_cpu_seconds_total") == 2.0


def test_requests_that_never_ended_are_counted_once(tmp_path: Path, ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """By the last stage they reached, across looks and restarts; requests of living workers are not among them."""
    follower = follower_of(ring_dir)
    flight, alive = fly(), fly()
    flight.begin(stage="model.forward")
    flight.begin(stage="model.forward")
    flight.begin()
    alive.begin(stage="network.receive")
    follower.tick()
    assert unfinished(follower) == {}
    flight.die()
    follower.tick()
    follower.tick()
    save_state(tmp_path / "s", follower.state)
    again = follower_of(ring_dir, load_state(tmp_path / "s"))
    again.tick()
    assert unfinished(again) == {"model.forward": 2, "(none)": 1}


def test_a_workers_end_is_counted_once_by_how_it_came(
    tmp_path: Path, ring_dir: Path, fly: Callable[..., Flight]
) -> None:
    """One that said goodbye on its last page ended cleanly; one that could not has died; the living have not ended."""
    follower = follower_of(ring_dir)
    clean, killed, mute, _alive = fly(), fly(), fly(), fly()
    clean.status(phase="ready")
    killed.status(phase="ready")
    follower.tick()
    assert follower.state.totals.value("model_worker_ends_total", "died") == 0
    clean.status(phase="stopped")
    for flight in (clean, killed, mute):
        flight.die()
    follower.tick()
    follower.tick()
    save_state(tmp_path / "s", follower.state)
    again = follower_of(ring_dir, load_state(tmp_path / "s"))
    again.tick()
    assert again.state.totals.value("model_worker_ends_total", "clean") == 1
    assert again.state.totals.value("model_worker_ends_total", "died") == 2


def test_last_flights_are_bounded_by_number(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """The newest dead workers' files are kept, older ones removed, living ones never."""
    now = iter(range(1, 1000))
    follower = follower_of(ring_dir, last_flight_files=2, now_unix_ns=lambda: next(now))
    living = fly()
    dead = []
    for _ in range(5):
        flight = fly()
        flight.row()
        flight.die()
        dead.append(flight.path)
        follower.tick()
    assert [False, False, False, True, True] == [path.exists() for path in dead]
    assert living.path.exists()
    assert follower.state.totals.value(READ) == 5
    assert len(follower.state.rings) == 3


def test_last_flights_are_bounded_by_bytes(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Files beyond the bytes go, however few they are."""
    flight = fly()
    size = flight.path.stat().st_size
    flight.die()
    follower = follower_of(ring_dir, last_flight_bytes=size - 1)
    follower.tick()
    assert not flight.path.exists()
    kept = fly()
    kept.die()
    follower = follower_of(ring_dir, last_flight_bytes=size)
    follower.tick()
    assert kept.path.exists()


def test_a_recycled_worker_goes_on_in_a_new_file(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Status figures start at zero in the new file and are added to the old worker's."""
    follower = follower_of(ring_dir)
    for _ in range(3):
        flight = fly()
        flight.row()
        flight.status(cpu_s=1.25, loss={"disk_full": 1})
        follower.tick()
        flight.die()
    follower.tick()
    assert follower.state.totals.value(READ) == 3
    assert follower.state.totals.value("runtime_process_cpu_seconds_total") == 3.75
    assert follower.state.totals.value("telemetry_requests_unrecorded_total", "disk_full") == 3


def test_a_damaged_file_costs_that_file(
    ring_dir: Path, fly: Callable[..., Flight], caplog: pytest.LogCaptureFixture
) -> None:
    """Empty, foreign and cut files are unreadable, said once each; the others are counted."""
    flight = fly()
    flight.row()
    (ring_dir / "00000000-empty.ring").touch()
    (ring_dir / "00000000-foreign.ring").write_bytes(b"hello" * 2000)
    (ring_dir / "00000000-cut.ring").write_bytes(flight.path.read_bytes()[:9000])
    follower = follower_of(ring_dir)
    for _ in range(3):
        follower.tick()
    assert len(follower.unreadable) == 3
    assert len([record for record in caplog.records if "left out" in record.message]) == 3
    assert follower.state.totals.value(READ) == 1


def test_a_file_that_is_cut_while_followed_costs_that_file(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Truncation under the reader raises nothing beyond its own file."""
    flight, other = fly(), fly()
    follower = follower_of(ring_dir)
    follower.tick()
    copy = flight.path.read_bytes()
    flight.die()
    flight.path.write_bytes(copy[:5000])
    other.row()
    follower.tick()
    assert follower.state.totals.value(READ) == 1
    assert follower.unreadable == {flight.path.name}


def test_a_removed_file_is_read_to_its_end_and_forgotten(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Somebody cleans the folder up: rows that the open descriptor still shows are counted."""
    flight = fly()
    follower = follower_of(ring_dir)
    follower.tick()
    flight.row()
    flight.begin()
    flight.path.unlink()
    follower.tick()
    assert follower.state.totals.value(READ) == 1
    assert follower.state.rings == {}
    assert unfinished(follower) == {}, "its worker may well be alive"


def test_a_lock_that_cannot_be_looked_at_is_no_death(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """An exporter without descriptors left must not count the requests in flight as never ended."""
    flight = fly()
    flight.begin()
    follower = follower_of(ring_dir)
    follower.tick()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        follower.tick()
        # One is enough to list the folder and, after that, to look at the lock.
        os.close(held.pop())
        follower.tick()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)
    flight.row()
    follower.tick()
    follower.tick()
    assert unfinished(follower) == {}
    assert follower.state.totals.value(READ) == 1
    assert follower.unreadable == set()


def test_new_rows_are_handed_on_with_what_they_add(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """The span tap sees each row once, and its counts are part of the totals."""
    seen: list[int] = []

    class Tap:
        def offer(self, _header: Any, rows: Any, strings: Any) -> Totals:
            seen.extend(rows["seq"].tolist())
            assert strings[rows["route"][0]] == "/v1/sentiment"
            totals = Totals()
            totals.add("telemetry_traces_kept_total", ("random",), len(rows))
            return totals

        def offer_unfinished(self, _header: Any, requests: Any, _ended_unix_ns: int) -> Totals:
            seen.extend(-1 for _ in requests)
            return Totals()

    flight = fly()
    follower = follower_of(ring_dir, tap=Tap())
    for _ in range(3):
        flight.row()
        follower.tick()
    flight.begin()
    flight.die()
    follower.tick()
    follower.tick()
    assert seen == [0, 1, 2, -1]
    assert follower.state.totals.value("telemetry_traces_kept_total", "random") == 3


def test_a_growing_schema_is_followed(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """A stage that appears later is counted from its first row on."""
    flight = fly()
    follower = follower_of(ring_dir)
    flight.row()
    follower.tick()
    with flight.begin().stage("late.stage"):
        pass
    flight.row(stages={"late.stage": (1, 5000)})
    follower.tick()
    assert sum(follower.state.totals.histograms["model_stage_seconds"]["late.stage",].counts) == 1


def test_the_state_file_stays_small(tmp_path: Path, ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Files that went away leave no cursor behind."""
    follower = follower_of(ring_dir, last_flight_files=0)
    for _ in range(20):
        flight = fly()
        flight.row()
        flight.die()
        follower.tick()
    save_state(tmp_path / "s", follower.state)
    assert json.loads((tmp_path / "s").read_bytes().partition(b"\n")[2])["rings"] == {}
