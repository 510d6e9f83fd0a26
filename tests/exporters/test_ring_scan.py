from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from exporters.ring_scan import rows_of_trace
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

Fly = Callable[..., "Flight"]


def test_the_rows_of_a_trace_are_found(fly: Fly) -> None:
    """By both halves, also after the ring went round and over several revisions of its schema."""
    flight = fly(ring_rows=64)
    for number in range(100):
        flight.row(trace_lo=number % 50, trace_hi=7 if number < 90 else 8)
        if number == 70:
            with flight.begin().stage("later.stage", width=1):
                pass
    with RingFile(flight.path) as ring:
        assert [60] == rows_of_trace(ring, 7, 10)["seq"].tolist()
        assert [95] == rows_of_trace(ring, 8, 45)["seq"].tolist()
        assert [45] == rows_of_trace(ring, 7, 45)["seq"].tolist()
        assert [] == rows_of_trace(ring, 7, 49 + 1)["seq"].tolist()
        assert "later.stage/width" in (rows_of_trace(ring, 7, 10).dtype.names or ())


def test_an_empty_ring_has_no_trace(fly: Fly) -> None:
    """Not even that of all zeros, which unused rows seem to have."""
    with RingFile(fly().path) as ring:
        assert 0 == len(rows_of_trace(ring, 0, 0))


def test_a_damaged_row_is_not_shown(fly: Fly) -> None:
    """The ids are compared unchecked, but a hit is read with its CRC."""
    flight = fly()
    flight.row(trace_lo=5, trace_hi=6)
    with RingFile(flight.path) as ring:
        fd = os.open(flight.path, os.O_RDWR)
        os.pwrite(fd, b"\xff\xff", ring.layout.ring + 120)
        os.close(fd)
        assert [] == rows_of_trace(ring, 6, 5)["seq"].tolist()
