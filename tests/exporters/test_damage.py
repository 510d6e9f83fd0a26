from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.follow import Follower
from exporters.lookup import errors, find_session, slowest
from exporters.rows import load_rows
from exporters.state import State

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

SESSION = "session-0123456789ab"
# Where a byte is changed: a section of the file, and a share of it.
SECTIONS = ("header", "status", "schema", "strings", "open", "hashes", "ring")
HIT = st.tuples(st.sampled_from(SECTIONS), st.floats(0, 0.999), st.integers(0, 255))


def damaged(flight: Flight, hits: list[tuple[str, float, int]], keep_share: float) -> bytes:
    """The flight's file with changed bytes, cut to a share of its length."""
    layout = flight.writer.layout
    raw = bytearray(flight.path.read_bytes())
    starts = {
        "header": 0,
        "status": layout.status,
        "schema": layout.schema,
        "strings": layout.strings,
        "open": layout.open,
        "hashes": layout.hashes,
        "ring": layout.ring,
    }
    for section, place, value in hits:
        # Within the first 4 kB of a section, where something is written.
        raw[min(starts[section] + int(place * 4096), len(raw) - 1)] = value
    return bytes(raw[: max(0, int(len(raw) * keep_share))])


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=120, deadline=None
)
@given(hits=st.lists(HIT, max_size=12), keep_share=st.sampled_from([1.0, 1.0, 1.0, 0.5, 0.01]))
def test_no_damage_reaches_beyond_its_file(
    tmp_path: Path, fly: Callable[..., Flight], ring_dir: Path, hits: list[tuple[str, float, int]], keep_share: float
) -> None:
    """Whatever bytes of a file are wrong, following, loading and looking up go on, and the good file is whole."""
    if not ring_dir.exists():
        for _ in range(2):
            flight = fly(ring_rows=16)
            flight.row(stages={"model.forward": (1, 2)}, columns={"model.forward/provider": "cpu"})
            flight.row(outcome=2, error_type="ValueError")
            flight.begin(stage="model.forward")
            flight.status(cpu_s=1.0, loss={"commit": 1})
        fly.flights = flight  # type: ignore[attr-defined]
    flight = fly.flights  # type: ignore[attr-defined]
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ring_dir, folder)
    (folder / flight.path.name).write_bytes(damaged(flight, hits, keep_share))

    follower = Follower(folder, State(), without_state=False)
    follower.tick()
    follower.tick()
    follower.close()
    assert follower.state.totals.value("telemetry_rows_read_total") >= 2
    assert len(load_rows(folder)) >= 2
    assert len(find_session(folder, SESSION)) >= 3
    assert len(slowest(folder)) >= 2
    assert len(errors(folder)) >= 1
