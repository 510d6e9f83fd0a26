"""A folder of rows, written by the real writer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probes import RecorderSettings
from probes.folder import session_hash
from probes.plan import FIXED_INDEX, StageSpec
from probes.ringfile import OwnedRing, open_ring
from probes.settings import Identity

ME = "abcdefghijklmnop1234"
YOU = "zyxwvutsrqponmlk9876"
Fly = Callable[..., OwnedRing]


@pytest.fixture
def ring_dir(tmp_path: Path) -> Path:
    """A folder for ring files that does not exist yet."""
    return tmp_path / "rows"


@pytest.fixture
def fly(ring_dir: Path) -> Iterator[Fly]:
    """Write a worker's ring: `fly(rows, ago_seconds)`; every third row is ME's, one request of YOURS is in flight."""
    rings = []

    def make(rows: int = 30, ago_seconds: float = 60.0, ring_rows: int = 256) -> OwnedRing:
        sizes = RecorderSettings(ring_rows=ring_rows, open_slots=4)
        ring = open_ring(ring_dir, "sentiment", Identity(host="h", build="b"), sizes, lambda _: None)
        rings.append(ring)
        writer = ring.writer
        writer.plan._declare_all([StageSpec("model.forward", cpu=True, attributes={"provider": "str"})])
        start = time.time_ns() - int(ago_seconds * 1e9)
        for number in range(rows):
            name = (ME if number % 3 == 0 else YOU).encode()
            row = writer.plan.template.copy()
            row[FIXED_INDEX["session"]], row[FIXED_INDEX["session_hash"]] = name, session_hash(ring.key, name)
            row[FIXED_INDEX["start_unix_ns"]], row[FIXED_INDEX["duration_ns"]] = start + number * 1_000_000, 5_000_000
            row[FIXED_INDEX["trace_lo"]], row[FIXED_INDEX["tokens"]] = number + 1, number
            row[FIXED_INDEX["route"]] = writer.strings.add("/v1/sentiment")
            row[FIXED_INDEX["label"]] = writer.strings.add("who@example.org")
            writer.commit(row, writer.scratch)
        writer.begin((1, 2, 3, 0, start, session_hash(ring.key, YOU.encode()), YOU.encode(), 0, 0, 0, 0))
        writer.write_status({"written_unix_ns": time.time_ns(), "ready": True, "loss": {}, "note": f"saw {ME} here"})
        return ring

    yield make
    for ring in rings:
        ring.close()
