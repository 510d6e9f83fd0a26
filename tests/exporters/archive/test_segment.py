from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.archive.blocks import Part, pack, unpack
from exporters.archive.sealing import write_segment
from exporters.archive.segment import READ_ERRORS, Segment, SegmentDamagedError, list_segments, times_of
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

MINE, OTHERS = "mine-0123456789abcdef", "others-0123456789abc"


def part_of(path: Path) -> Part:
    """All rows of a ring file."""
    with RingFile(path) as ring:
        batch = ring.read(0, 10**6)
        return Part(path.name, ring.header, ring.strings(), batch.rows, batch.cursor)


@pytest.fixture
def sealed(tmp_path: Path, fly: Callable[..., Flight]) -> tuple[Path, list[Part]]:
    """A segment of two workers' rows: 1,500 of one, three of the other; and the rows themselves."""
    first, second = fly(ring_rows=2048), fly()
    for number in range(1500):
        first.row(session=MINE if number == 1200 else OTHERS, duration_ns=1000 + number, outcome=number % 5)
    for _ in range(3):
        second.row(session=OTHERS, stages={"model.forward": (5, 7)}, columns={"model.forward/provider": "cpu"})
    parts = [part_of(flight.path) for flight in (first, second)]
    return write_segment(tmp_path, parts), parts


def test_rows_come_back_as_they_were(sealed: tuple[Path, list[Part]]) -> None:
    """Every byte of every row, with header, columns and texts, in blocks."""
    path, parts = sealed
    with Segment(path) as segment:
        blocks = list(segment.parts())
        assert [1024, 476, 3] == [len(block.rows) for block in blocks]
        assert {part.ring: part.next_seq for part in parts} == segment.ranges()
    back = [np.concatenate([blocks[0].rows, blocks[1].rows]), blocks[2].rows]
    for part, rows, block in zip(parts, back, [blocks[0], blocks[2]], strict=True):
        assert part.rows.dtype == rows.dtype
        assert part.rows.tobytes() == rows.tobytes()
        assert part.header == block.header
        assert list(part.strings) == block.strings


def test_what_is_known_of_a_block_is_true(sealed: tuple[Path, list[Part]]) -> None:
    """Times, sequence numbers, the longest duration and the faults of the rows in it; outcomes go round by five."""
    path, parts = sealed
    with Segment(path) as segment:
        first, second, third = segment.blocks()
    rows = parts[0].rows[:1024]
    assert (0, 1023) == (first.first_seq, first.last_seq)
    assert int(rows["start_unix_ns"][0]) == first.start_unix_ns
    assert int((rows["start_unix_ns"] + rows["duration_ns"]).max()) == first.end_unix_ns
    assert 1000 + 1023 == first.longest_ns
    assert (409, 205) == (first.faults, first.refused)
    assert (1024, 1024) == (second.at, second.first_seq)
    assert (1, 1500, 3) == (third.part, third.at, third.rows)
    assert times_of(path)[0] == first.start_unix_ns


def test_a_session_is_found_by_its_hash(sealed: tuple[Path, list[Part]]) -> None:
    """And a trace by its lower half; both without unpacking a block."""
    path, parts = sealed
    row = parts[0].rows[1200]
    with Segment(path) as segment:
        assert [1200] == segment.positions("session_hash", [int(row["session_hash"])])
        assert 1200 in segment.positions("trace_lo", [int(row["trace_lo"])])
        assert [] == segment.positions("session_hash", [12345])
        assert [] == segment.positions("session_hash", [])


def test_numpy_opens_a_segment(sealed: tuple[Path, list[Part]]) -> None:
    """The format is numpy's own, so that the rows are not locked in."""
    path, parts = sealed
    with np.load(path) as arrays:
        both = np.concatenate([part.rows["trace_lo"] for part in parts])
        assert both.tolist() == arrays["trace_lo"].tolist()


def test_a_segment_is_private_and_named_by_its_times(sealed: tuple[Path, list[Part]]) -> None:
    """0600, for session ids are in it; the name alone tells which window it can answer."""
    path, _ = sealed
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == list_segments(path.parent)
    assert times_of(path)[0] < times_of(path)[1]
    (path.parent / "notes.npz").touch()
    assert [path] == list_segments(path.parent)
    assert [] == list_segments(path.parent / "nowhere")


def test_nothing_is_left_of_a_failed_write(tmp_path: Path, fly: Callable[..., Flight]) -> None:
    """On a full disk a half-written file would keep the space."""
    flight = fly()
    flight.row()
    target = tmp_path / "archive"
    target.mkdir()

    def refuse(_from: Path, _to: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_segment(target, [part_of(flight.path)], replace=refuse)
    assert [] == list(target.iterdir())


def test_absurd_times_make_a_name_all_the_same(tmp_path: Path, fly: Callable[..., Flight]) -> None:
    """A clock that was wild costs the order of one segment, not its rows."""
    flight = fly()
    flight.row(start_unix_ns=2**64 - 10)
    flight.row(start_unix_ns=0)
    path = write_segment(tmp_path, [part_of(flight.path)])
    assert [path] == list_segments(tmp_path)
    with Segment(path) as segment:
        assert 2 == sum(len(part.rows) for part in segment.parts())


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.binary(min_size=0, max_size=400))
def test_packing_is_exact(count: int, raw: bytes) -> None:
    """Whatever bytes the rows hold."""
    dtype = np.dtype([("session_hash", "<u8"), ("trace_lo", "<u8"), ("a", "<u4"), ("b", "u1"), ("c", "S3")])
    rows = np.zeros(count, dtype=dtype)
    flat = rows.view(np.uint8).reshape(-1)
    flat[: len(raw)] = np.frombuffer(raw[: len(flat)], np.uint8)
    back = unpack(pack(rows), count, dtype)
    for name in ("a", "b", "c"):
        assert rows[name].tolist() == back[name].tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.data())
def test_damage_is_told_never_shown(sealed: tuple[Path, list[Part]], tmp_path: Path, data: Any) -> None:
    """A segment with a byte changed, or cut, reads as it was or raises; it never gives other rows."""
    path, parts = sealed
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del whole[at:]
    broken = tmp_path / "broken.npz"
    broken.write_bytes(whole)
    try:
        with Segment(broken) as segment:
            rows = [block.rows.tobytes() for block in segment.parts()]
    except READ_ERRORS:
        return
    assert parts[0].rows.tobytes() == rows[0] + rows[1]
    assert parts[1].rows.tobytes() == rows[2]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": 1},
        {"version": 1, "parts": [], "blocks": [[0] * 9]},
        {"version": 1, "parts": [{}], "blocks": [[0] * 10]},
        {"version": 1, "parts": [7], "blocks": ["x"]},
    ],
)
def test_a_strange_description_is_damage(
    sealed: tuple[Path, list[Part]], tmp_path: Path, change: dict[str, Any]
) -> None:
    """Of another version, or without what it must have: a clear error."""
    strange = tmp_path / "strange.npz"
    with zipfile.ZipFile(sealed[0]) as before, zipfile.ZipFile(strange, "w") as after:
        for name in before.namelist():
            after.writestr(name, json.dumps(change) if name == "meta.json" else before.read(name))
    with Segment(strange) as segment, pytest.raises(SegmentDamagedError, match=r"strange\.npz"):
        list(segment.parts()) or segment.ranges()


def test_pickles_are_never_loaded(sealed: tuple[Path, list[Part]], tmp_path: Path) -> None:
    """An array of objects could run code when it is loaded."""
    evil = io.BytesIO()
    np.lib.format.write_array(evil, np.array([{}], dtype=object), allow_pickle=True)
    strange = tmp_path / "strange.npz"
    with zipfile.ZipFile(strange, "w") as after:
        after.writestr("session_hash.npy", evil.getvalue())
    with Segment(strange) as segment, pytest.raises(SegmentDamagedError):
        segment.positions("session_hash", [1])
