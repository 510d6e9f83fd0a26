from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.lookup import errors, find_session, find_trace, slowest
from exporters.trace_view import OUTSIDE_STAGES
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

MINE, OTHERS = "mine-0123456789abcdef", "others-0123456789abc"
START = 1_700_000_000_000_000_000


def test_a_session_is_found_over_all_workers(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Its requests of live and dead workers, by start, and nobody else's."""
    first, second = fly(START), fly(START + 500)
    for flight in (first, second):
        for _ in range(3):
            flight.row(session=MINE)
            flight.row(session=OTHERS)
    second.die()
    found = find_session(ring_dir, MINE)
    assert len(found) == 6
    assert {view.session_id for view in found} == {MINE}
    assert [view.start_unix_ns for view in found] == sorted(view.start_unix_ns for view in found)
    assert {view.worker for view in found} == {0, 1}


def test_only_the_hash_column_is_scanned(
    ring_dir: Path, fly: Callable[..., Flight], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session's look-up reads its own rows, not the ring."""
    flight = fly()
    flight.row(session=MINE)

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("the whole ring was read")

    monkeypatch.setattr(RingFile, "read", refuse)
    assert len(find_session(ring_dir, MINE)) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_any_session_id_is_safe(ring_dir: Path, fly: Callable[..., Flight], session_id: str) -> None:
    """Quotes, line breaks, lone surrogates: not found, no error."""
    if not ring_dir.exists():
        fly().row(session=MINE)
    assert find_session(ring_dir, session_id) == []


@pytest.mark.parametrize(
    "session_id", ["", "'; DROP TABLE rows; --", "a\nb\r\n", "x" * 10_240, "\udcff\x00", MINE + " "]
)
def test_odd_session_ids_are_not_found(ring_dir: Path, fly: Callable[..., Flight], session_id: str) -> None:
    """The worst ones by name."""
    fly().row(session=MINE)
    assert find_session(ring_dir, session_id) == []


def test_an_invalid_session_id_stays_findable(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """The row bears a generated id, but the complaint's own id finds it by its hash."""
    flight = fly()
    record = flight.begin("räudig; not valid")
    flight.writer.commit(record.row, record.slot)
    (view,) = find_session(ring_dir, "räudig; not valid")
    assert view.session_id not in ("", "räudig; not valid")
    assert view.spans[0].attributes["session_id_generated"] is True


def test_a_trace_id_finds_its_request(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """By all 128 bits, in any case; anything that is no trace id finds nothing."""
    flight = fly()
    flight.row(stages={"scheduler.dispatch": (1_000, 4_000_000), "model.forward": (2_000, 3_500_000)})
    flight.row()
    (view,) = find_trace(ring_dir, "000000000000ABCD0100000000001234")
    assert view.slow_stage == "model.forward"
    assert view.last_stage == "scheduler.dispatch"
    assert [(span.name, span.parent) for span in view.spans] == [
        ("POST /v1/sentiment", ""),
        ("scheduler.dispatch", "POST /v1/sentiment"),
        ("model.forward", "scheduler.dispatch"),
    ]
    for odd in ("", "abcd", "z" * 32, "000000000000abce0100000000001234", "000000000000abcd0100000000001234\n"):
        assert find_trace(ring_dir, odd) == []


def test_time_outside_stages_is_named(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """A request whose stages do not explain it says so; stages that run at the same time are not counted twice."""
    flight = fly()
    flight.row(duration_ns=9_000_000, stages={"network.receive": (0, 2_000_000)})
    flight.row(
        duration_ns=9_000_000,
        stages={"network.receive": (0, 4_000_000), "scheduler.dispatch": (100_000, 3_900_000)},
    )
    views = find_session(ring_dir, "session-0123456789ab")
    assert [view.slow_stage for view in views] == [OUTSIDE_STAGES, OUTSIDE_STAGES]


def test_unfinished_requests_are_traces(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Started, never ended, last stage X: for a dead worker; in flight for a living one."""
    dead, living = fly(), fly()
    dead.begin(MINE, stage="model.forward")
    living.begin(MINE)
    dead.die()
    views = {view.outcome: view for view in find_session(ring_dir, MINE)}
    assert {view.status for view in views.values()} == {"unfinished"}
    assert views["never_ended"].last_stage == "model.forward"
    assert views["in_flight"].last_stage == ""
    assert views["in_flight"].duration_s >= 0
    assert len(find_trace(ring_dir, views["never_ended"].trace_id)) == 1
    assert [view.outcome for view in errors(ring_dir)] == ["never_ended"]


def test_a_finished_request_is_shown_once(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """A row replaces the open slot of its own request."""
    flight = fly()
    record = flight.begin(MINE)
    flight.writer.commit(record.row, 0 if record.slot < 0 else record.slot)
    assert [view.status for view in find_session(ring_dir, MINE)] == ["ok"]


def test_the_slowest_come_first(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Over all workers, bounded, and only since when it is asked for."""
    first, second = fly(START), fly(START)
    for number in range(10):
        first.row(duration_ns=1_000 + number * 2)
        second.row(duration_ns=1_001 + number * 2)
    assert [round(view.duration_s * 1e9) for view in slowest(ring_dir, 3)] == [1019, 1018, 1017]
    assert slowest(ring_dir, 3, since_ns=START + 10**12) == []
    assert slowest(ring_dir, 0) == []


def test_errors_are_the_service_s_first(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Faults before refusals, newest first; good answers are not among them."""
    flight = fly(START)
    for outcome in (0, 2, 1, 4, 3, 1):
        flight.row(outcome=outcome)
    found = errors(ring_dir)
    assert [view.outcome for view in found] == ["disconnected", "error", "refused", "refused"]
    assert {view.status for view in found} == {"error"}
    assert found[2].start_unix_ns > found[3].start_unix_ns
    assert len(errors(ring_dir, 1)) == 1


def test_no_folder_and_damaged_files_find_nothing(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Look-up works on what can be read."""
    assert find_session(ring_dir, MINE) == []
    assert slowest(ring_dir) == []
    fly().row(session=MINE)
    (ring_dir / "00000000-bad.ring").write_bytes(b"x" * 5000)
    assert len(find_session(ring_dir, MINE)) == 1
    (ring_dir / "key").unlink()
    assert find_session(ring_dir, MINE) == []
    assert len(slowest(ring_dir)) == 1


def test_a_view_has_the_shape_of_results(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """All keys that the result format names, JSON-able."""
    import json

    fly().row(stages={"sentiment.tokenizer": (1, 2)}, columns={"sentiment.tokenizer/padding_ratio": float("inf")})
    (view,) = slowest(ring_dir)
    form = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert form["spans"][1]["attributes"]["padding_ratio"] == "inf"
    named = {"trace_id", "session_id", "started", "duration_s", "status", "last_stage", "slow_stage", "why", "spans"}
    assert named <= set(form)
    assert {"name", "parent", "start_s", "duration_s", "attributes"} <= set(form["spans"][0])
    assert form["started"] == "2023-11-14T22:13:20.000000Z"
