"""Who a batch was padded for, in the ring and in the archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits
from exporters.archive.reader import Archive
from exporters.batch_lookup import MOST_BATCHES, widest_of
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight


def batch(flight: Flight, number: int, widest: int) -> list[str]:
    """Commit a batch of three, of which one was the widest; return their trace ids."""
    traces = []
    for index in range(3):
        record = flight.begin()
        with record.stage("sentiment.tokenizer", widest=index == widest):
            record.set(batch_id=number)
        traces.append(record.trace_id)
        flight.intake.finish(record, {"type": "http"}, 200, disconnected=False)
    return traces


def test_each_batch_of_each_worker_has_its_own(fly: Callable[..., Flight], ring_dir: Path) -> None:
    """Batch ids come again in another worker."""
    one, other = fly(), fly()
    ids = []
    for flight in (one, other):
        with RingFile(flight.path) as ring:
            ids.append(ring.header.ring_id)
    first, second, third = batch(one, 5, 1), batch(one, 6, 2), batch(other, 5, 0)
    batch(other, 7, -1)
    asked = [((ids[0], 5), 0), ((ids[0], 6), 0), ((ids[1], 5), 0), ((ids[1], 7), 0), (("nobody", 5), 0)]

    assert {(ids[0], 5): first[1], (ids[0], 6): second[2], (ids[1], 5): third[0]} == widest_of(ring_dir, asked)
    assert {} == widest_of(ring_dir, [])
    assert {} == widest_of(ring_dir / "missing", asked)
    # A bound on what one answer looks for.
    assert {} == widest_of(ring_dir, [*(((ids[0], 1000 + n), 0) for n in range(MOST_BATCHES)), ((ids[0], 5), 0)])


def test_a_batch_whose_rows_left_the_ring_is_found_in_the_archive(
    fly: Callable[..., Flight], ring_dir: Path, tmp_path: Path
) -> None:
    """Sealed, and overwritten since."""
    flight = fly(ring_rows=64)
    with RingFile(flight.path) as ring:
        ring_id = ring.header.ring_id
    traces = batch(flight, 5, 1)
    for _ in range(10):
        flight.row()
    with RingFile(flight.path) as ring:
        start = int(ring.read(0).rows[0]["start_unix_ns"])
    archiver = Archiver(ring_dir, tmp_path / "archive", Limits(rows=256, seconds=0.001, keep_bytes=1 << 24))
    archiver.look()
    archiver.stop()
    for _ in range(70):
        flight.row()
    asked = [((ring_id, 5), start)]

    assert {} == widest_of(ring_dir, asked)
    assert {(ring_id, 5): traces[1]} == widest_of(ring_dir, asked, Archive(tmp_path / "archive"))
    assert {} == widest_of(ring_dir, [((ring_id, 5), start + 10**12)], Archive(tmp_path / "archive"))
