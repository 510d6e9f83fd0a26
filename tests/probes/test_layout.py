from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.layout import (
    FRAME,
    HEADER_BYTES,
    OPEN_SLOT,
    OPEN_SLOT_BYTES,
    NotARing,
    decode_header,
    encode_header,
    plan_layout,
)

SIZES = st.tuples(st.integers(64, 8192).map(lambda size: size * 8), st.integers(16, 1 << 20), st.integers(1, 1 << 16))
META = st.dictionaries(st.text("abc", min_size=1, max_size=5), st.text(max_size=20) | st.integers(0, 2**63), max_size=5)


@given(SIZES, META)
def test_a_header_is_read_back_as_it_was_written(sizes: tuple[int, int, int], meta: dict[str, Any]) -> None:
    """Meta data and every section's place."""
    layout = plan_layout(*sizes)

    assert (meta, layout) == decode_header(encode_header(meta, layout), layout.total, "x")


@given(SIZES)
def test_sections_follow_each_other_on_pages_of_their_own(sizes: tuple[int, int, int]) -> None:
    """No section overlaps the next; commit words are aligned."""
    layout = plan_layout(*sizes)
    starts = [layout.status, layout.schema, layout.strings, layout.open, layout.hashes, layout.ring, layout.total]

    assert sorted(starts) == starts
    assert layout.hashes - layout.open >= (layout.open_slots + 1) * OPEN_SLOT_BYTES
    assert layout.ring - layout.hashes >= layout.ring_rows * 8
    assert [0] * 6 == [start % 4096 for start in starts[:6]]
    assert layout.row_bytes % 8 == 0


@pytest.mark.parametrize(
    "sizes", [(1023, 64, 8), (256, 64, 8), (1 << 20, 64, 8), (1024, 8, 8), (1024, 1 << 30, 8), (1024, 64, 0)]
)
def test_sizes_out_of_range_are_refused(sizes: tuple[int, int, int]) -> None:
    """The error names the range."""
    with pytest.raises(ValueError, match="must be"):
        plan_layout(*sizes)


def test_a_header_that_outgrows_its_page_is_refused() -> None:
    """Better no file than one whose header is cut."""
    with pytest.raises(ValueError, match="does not fit"):
        encode_header({"service": "x" * HEADER_BYTES}, plan_layout(1024, 64, 8))


def test_sections_that_contradict_the_sizes_are_no_ring() -> None:
    """A header with a valid CRC may still lie: its offsets are computed again."""
    import json
    import zlib

    layout = plan_layout(1024, 64, 8)
    page = encode_header({}, layout)
    meta = json.loads(page[20:])
    meta["layout"]["ring"] = 0
    body = json.dumps(meta).encode()
    lie = page[:12] + struct.pack("<II", len(body), zlib.crc32(body)) + body

    with pytest.raises(NotARing, match="contradict"):
        decode_header(lie, layout.total, "x")


def test_the_structs_have_the_sizes_of_the_page() -> None:
    """docs/row-format.md names them."""
    assert (16, True) == (FRAME.size, OPEN_SLOT.size <= OPEN_SLOT_BYTES)
