"""Copies of slots become rows only if everything about them agrees, whatever was damaged."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probes.layout import FRAME
from probes.row_check import assemble, join_rows, judge, name_sessions
from probes.schema import FIXED_COLUMNS, Column, compile_revision

ROW_BYTES = 512
OLD = compile_revision(FIXED_COLUMNS)
NEW = compile_revision((*FIXED_COLUMNS, Column("request/x", "int")))
REVISIONS = (OLD, NEW)


def slot(sequence: int, revision: int = 1, word: int | None = None) -> bytes:
    """Return a slot with a whole row; *word* gives it another commit word than its own."""
    compiled = REVISIONS[revision]
    values = list(compiled.template)
    values[0] = sequence
    body = compiled.packer.pack(*values)
    frame = FRAME.pack(sequence + 1 if word is None else word, zlib.crc32(body), revision, len(body))
    return (frame + body).ljust(ROW_BYTES, b"\0")


def judged(slots: list[bytes], sequences: list[int]) -> tuple[list[bool], list[bool]]:
    """Return which slots are whole, and which hold a later row."""
    raw = np.frombuffer(b"".join(slots), np.uint8)
    whole, newer = judge(raw, ROW_BYTES, np.array(sequences, np.uint64))
    return whole.tolist(), newer.tolist()


def test_a_row_is_whole_overwritten_or_torn() -> None:
    """The row that was asked for, a later one, an earlier one, an empty slot, and one with another row's word."""
    slots = [slot(7), slot(23), slot(3), bytes(ROW_BYTES), slot(7, word=24)]

    assert ([True, False, False, False, False], [False, True, False, False, False]) == judged(slots, [7] * 5)


@given(st.integers(0, FRAME.size + OLD.dtype.itemsize - 1), st.integers(1, 255))
def test_any_byte_that_is_wrong_makes_the_row_torn_or_of_an_unknown_revision(place: int, flip: int) -> None:
    """Wherever a byte is damaged: commit word, checksum, length or body."""
    damaged = bytearray(slot(7, revision=0))
    damaged[place] ^= flip
    whole, newer = judged([bytes(damaged)], [7])

    # The frame's revision is not under the checksum: the reader holds it against its length.
    assert ([12 <= place < 14], [False]) == (whole, newer)


def test_a_length_beyond_the_slot_is_torn_and_reads_nothing_of_the_next() -> None:
    """Even when the bytes up to there have the right checksum."""
    both = bytearray(slot(7) + slot(8))
    length = ROW_BYTES - FRAME.size + 8
    struct.pack_into("<IHH", both, 8, zlib.crc32(both[FRAME.size : FRAME.size + length]), 1, length)
    whole, newer = judged([bytes(both)], [7, 8])

    assert ([False, True], [False, False]) == (whole, newer)


def test_a_body_without_a_sequence_number_is_torn() -> None:
    """A frame that claims an empty body, whose checksum is 0, before bytes that look like the right number."""
    hollow = FRAME.pack(8, 0, 1, 0) + (7).to_bytes(8, "little")

    assert ([False], [False]) == judged([hollow.ljust(ROW_BYTES, b"\0")], [7])


def test_no_slots_are_no_rows() -> None:
    """An empty read is an empty array of the newest type."""
    empty = np.empty(0, np.uint8)
    whole, _ = judge(empty, ROW_BYTES, np.empty(0, np.uint64))

    assert (0, NEW.dtype) == (
        len(rows := assemble(empty, ROW_BYTES, whole, REVISIONS)),
        rows.dtype,
    )
    assert (0, NEW.dtype) == (len(join_rows([], NEW)), join_rows([], NEW).dtype)


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=20))
def test_rows_of_all_revisions_stand_in_order_and_what_they_lack_is_absent(kinds: list[tuple[int, bool]]) -> None:
    """Old and new rows mixed, some of them torn."""
    raw = np.frombuffer(b"".join(slot(at, revision) for at, (revision, _) in enumerate(kinds)), np.uint8)
    whole = np.array([kept for _, kept in kinds], dtype=bool)
    rows = assemble(raw, ROW_BYTES, whole, REVISIONS)

    assert [at for at, (_, kept) in enumerate(kinds) if kept] == rows["seq"].tolist()
    assert {-(2**63)} >= set(rows["request/x"].tolist())


def test_reads_before_and_after_the_schema_grew_are_joined_in_the_newest_form() -> None:
    """A part in an older revision gets the new column, absent."""
    old, new = OLD.blank(), NEW.blank().copy()
    new["request/x"] = 5
    rows = join_rows([old, new], NEW)

    assert ([-(2**63), 5], NEW.dtype) == (rows["request/x"].tolist(), rows.dtype)


def test_a_request_without_a_session_is_found_by_its_trace_id() -> None:
    """Its trace id stands for one; a session that came is kept."""
    rows = np.repeat(OLD.blank(), 2)
    rows["trace_hi"], rows["trace_lo"] = 0xAB, 0xCD
    rows["session"] = [b"", b"session-0123456789ab"]

    assert [f"{0xAB:016x}{0xCD:016x}".encode(), b"session-0123456789ab"] == name_sessions(rows)["session"].tolist()
