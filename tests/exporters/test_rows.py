from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from exporters.rows import load_rows

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

START = 1_700_000_000_000_000_000


def test_no_folder_is_an_empty_table(ring_dir: Path) -> None:
    """Nothing recorded yet: no rows, no error, and columns that nobody has are NaN."""
    table = load_rows(ring_dir)
    assert (len(table), table.stages, table.open, dict(table.statuses)) == (0, (), (), {})
    assert len(table.numbers("confidence")) == 0
    assert len(table.outcomes) == 0
    assert [len(array) for array in table.stage("model.forward")] == [0, 0]


def test_live_and_dead_workers_are_one_table_by_start(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Rows of all files, in order of start, each with its worker, ring and fingerprints; texts decoded."""
    first, second = fly(START), fly(START + 500)
    for _ in range(3):
        first.row()
        second.row(label="negative", outcome=2)
    second.status(cpu_s=1.0)
    second.die()
    table = load_rows(ring_dir)
    assert [0, 1, 0, 1, 0, 1] == table["worker"].tolist()
    assert ["positive", "negative"] * 3 == table["label"].tolist()
    assert ["ok", "error"] * 3 == table.outcomes.tolist()
    assert set(table["build"]) == {"b1"}
    assert set(table["service"]) == {"sentiment"}
    assert table["session"][0] == "session-0123456789ab"
    dead = table["ring"][1]
    assert (table.rings[dead].alive, table.rings[dead].held) == (False, 3)
    assert table.statuses[dead]["cpu_s"] == 1.0
    assert table.trace_id(0) == "000000000000abcd0100000000001234"
    assert table.losses == {"torn": 0, "unreadable": 0}


def test_absent_values_are_nan_as_numbers(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """-1, NaN, 255 and 2**64-1 all read as NaN; present values as they are."""
    flight = fly()
    flight.row(
        stages={"network.receive": (1_000, 2_000), "sentiment.tokenizer": (5, 6)},
        columns={"network.receive/bytes": -5, "sentiment.tokenizer/fast": 0},
    )
    flight.row(tokens=-1, input_length=-1, confidence=float("nan"))
    table = load_rows(ring_dir)
    np.testing.assert_array_equal(table.numbers("tokens"), [9.0, np.nan])
    np.testing.assert_array_equal(table.numbers("network.receive/bytes"), [-5.0, np.nan])
    np.testing.assert_array_equal(table.numbers("sentiment.tokenizer/fast"), [0.0, np.nan])
    np.testing.assert_array_equal(table.numbers("label"), [np.nan, np.nan])
    start, duration = table.stage("network.receive")
    np.testing.assert_allclose(start, [1e-6, np.nan])
    np.testing.assert_allclose(duration, [2e-6, np.nan])
    assert table.parents["sentiment.tokenizer"] == "scheduler.dispatch"


def test_the_time_window_is_by_end_and_start(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """A request belongs to a window that it overlaps."""
    flight = fly(START)
    for _ in range(5):
        flight.row(duration_ns=1_500_000)  # starts 1 ms apart
    assert len(load_rows(ring_dir, since_ns=START + 2_500_000)) == 4
    assert len(load_rows(ring_dir, until_ns=START + 1_000_000)) == 2
    assert len(load_rows(ring_dir, since_ns=START + 10**9)) == 0
    assert len(load_rows(ring_dir, since_ns=-5, until_ns=START + 10**12)) == 5


def test_columns_that_one_worker_lacks_are_absent_there(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Workers may know different stages and attributes, even one attribute in two types."""
    first, second = fly(START), fly(START + 500)
    with first.begin().stage("only.here", share=0.5, kind=1):
        pass
    with second.begin().stage("other", kind="text"):
        pass
    first.row(stages={"only.here": (0, 7)}, columns={"only.here/share": 0.25})
    second.row(columns={"other/kind": "a"})
    second.begin().set(mixed="text")
    second.row(columns={"request/mixed": "text"})
    first.begin().set(mixed=5)
    first.row(columns={"request/mixed": 5})
    table = load_rows(ring_dir)
    np.testing.assert_array_equal(table.numbers("only.here/share"), [0.25, np.nan, np.nan, np.nan])
    assert [None, None, 5, "text"] == table["request/mixed"].tolist()
    np.testing.assert_allclose(table.stage("only.here")[1][:2], [7e-9, np.nan])


def test_open_requests_are_told_with_their_stage(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """In flight in a living worker, never ended in a dead one."""
    living, dead = fly(), fly()
    living.begin("session-of-the-living")
    dead.begin("session-of-the-dead-1", stage="model.forward")
    dead.die()
    found = {request.session: request for request in load_rows(ring_dir).open}
    assert (found["session-of-the-living"].alive, found["session-of-the-living"].stage) == (True, "")
    assert (found["session-of-the-dead-1"].alive, found["session-of-the-dead-1"].stage) == (False, "model.forward")
    assert (found["session-of-the-dead-1"].method, found["session-of-the-dead-1"].client_release) == ("POST", "7.1.0")


def test_losses_are_told(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Overwritten and torn rows and unreadable files are figures, not errors."""
    flight = fly(ring_rows=16)
    for _ in range(20):
        flight.row()
    layout = flight.writer.layout
    flight.writer.buffer[layout.ring + 5 * layout.row_bytes + 40] ^= 0xFF
    (ring_dir / "00000000-bad.ring").write_bytes(b"x")
    table = load_rows(ring_dir)
    assert table.losses == {"torn": 1, "unreadable": 1}
    assert table.overwritten == 4
    assert len(table) == 15


def test_a_filtered_table_keeps_the_rest(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """`where` selects rows of all columns alike."""
    flight = fly()
    for number in range(4):
        flight.row(tokens=number)
    table = load_rows(ring_dir)
    few = table.where(table.numbers("tokens") >= 2)
    assert few["tokens"].tolist() == [2, 3]
    assert few.rings is table.rings


def test_a_sample_of_the_latest_rows_of_each_ring(ring_dir: Path, fly: Callable[..., Flight]) -> None:
    """Rows beyond the sample count as older ones; with fewer rows than that all are there."""
    busy, idle = fly(ring_rows=64), fly(ring_rows=64)
    for _ in range(100):
        busy.row()
    idle.row()
    table = load_rows(ring_dir, most_held=10)

    assert ([0, *range(90, 100)], 90, 0) == (sorted(table["seq"].tolist()), table.overwritten, table.losses["torn"])
