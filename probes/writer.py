"""The writing end of a ring file: rows, open slots, journal and status page.

Cost      one pack, one CRC, one copy of the body and four small stores per row, under an uncontended lock.
Error     none is raised into a request: values that do not fit their column are marked absent and counted.
Bounded   the file's sections; see probes/layout.py.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from zlib import crc32

from probes.core import CORE
from probes.layout import (
    COMMIT,
    ENTRY,
    OPEN_SLOT,
    OPEN_SLOT_BYTES,
    OPEN_STATE_BUSY,
    OPEN_STATE_FREE,
    SCHEMA_BYTES,
    STATUS,
    STATUS_BYTES,
    Layout,
    encode_entry,
)
from probes.plan import FIXED_INDEX, Plan, StageSpec
from probes.schema import KINDS, Column
from probes.strings import StringTable

__all__ = ["RingWriter", "coerce"]

SESSION_HASH = FIXED_INDEX["session_hash"]
BODY_FRAME = struct.Struct("<IHH")  # the frame without its commit word
FRAME_BYTES = 16
PACK_FRAME = BODY_FRAME.pack_into
PACK_OPEN = OPEN_SLOT.pack_into


def coerce(value: object, kind: str) -> tuple[Any, bool]:
    """Return *value* as its column can hold it, and whether it could be held.

    Args:
        value: Any value.
        kind: The column's kind.

    Returns:
        The value or the kind's absent value, and True if nothing was lost.
    """
    rule = KINDS[kind]
    if value is None:
        return rule.absent, True
    if isinstance(value, float) and rule.code in "Qq" and value.is_integer():
        value = int(value)
    try:
        struct.pack("<" + rule.code, value)
    except (struct.error, OverflowError, TypeError, ValueError):
        return rule.absent, False
    return value, True


class _PlainBase:
    """Below a writer where no compiled core runs: it has nothing to add."""

    def map_core(self, buffer: mmap.mmap, layout: Layout) -> None:
        """Show a compiled core where it may write."""

    def unmap_core(self) -> None:
        """Take it back."""


if TYPE_CHECKING or CORE is None:
    WriterBase = _PlainBase
else:
    CORE.prepare(coerce=coerce)
    WriterBase = CORE.RingCore  # keeps the numbers below that change with every request, and writes rows itself


class RingWriter(WriterBase):
    """Writes one ring file, or an anonymous mapping of the same layout.

    Args:
        buffer: Zeroed mapping of ``layout.total`` bytes, the header page already written.
        layout: The sections.
        count: Called with a reason whenever something is refused or lost.
        stages: Stages to have from the start.
    """

    def __init__(
        self, buffer: mmap.mmap, layout: Layout, count: Callable[[str], None], stages: Iterable[StageSpec] = ()
    ) -> None:
        self.buffer = buffer
        self.layout = layout
        self.open_overflow = 0
        self.count = count
        self._lock = threading.Lock()
        self._next = 0
        self._ring_at, self._ring_rows, self._row_bytes = layout.ring, layout.ring_rows, layout.row_bytes
        self._ticket = 0
        self._journal_lock = threading.Lock()
        self._journal_at = layout.schema
        self._status_sequence = 0
        self._view = memoryview(buffer)
        self._words = self._view.cast("Q")
        self._hashes = self._view[layout.hashes : layout.hashes + 8 * layout.ring_rows].cast("Q")
        # A list as a stack: pop and append are atomic, and the slot used last is still in the cache.
        self._free = list(range(layout.open, layout.open + layout.open_slots * OPEN_SLOT_BYTES, OPEN_SLOT_BYTES))[::-1]
        self.scratch = layout.open + layout.open_slots * OPEN_SLOT_BYTES
        self.strings = StringTable(buffer, layout.strings, count)
        self.plan = Plan(layout.row_bytes - FRAME_BYTES, self.strings, self.publish, count, stages)
        self._packers = self.plan.packers
        self.map_core(buffer, layout)

    @property
    def head(self) -> int:
        """The next sequence number, which is also how many rows were written."""
        return self._next

    def begin(self, ids: tuple[Any, ...]) -> int:
        """Take an open slot for a request that starts.

        Args:
            ids: What is known by then: the values of the columns from trace_hi to agent_family.

        Returns:
            The slot's place in the file; the scratch slot, which no reader looks at, when all are taken.

        Raises:
            struct.error: If a value does not fit its column; no slot is taken then.
        """
        try:
            at = self._free.pop()
        except IndexError:
            self.open_overflow += 1
            at = self.scratch
        self._ticket = ticket = self._ticket + 1
        buffer = self.buffer
        try:
            PACK_OPEN(buffer, at, OPEN_STATE_FREE, 0, ticket, *ids)
        except struct.error:
            self.release(at)
            raise
        buffer[at] = OPEN_STATE_BUSY  # last: a slot that a kill left half-written is a free one
        return at

    def release(self, at: int) -> None:
        """Give an open slot back without writing a row.

        Args:
            at: What `begin` returned.
        """
        if at != self.scratch:
            self.buffer[at] = OPEN_STATE_FREE
            self._free.append(at)

    def commit(self, row: list[Any], at: int) -> int:
        """Write one row and free its open slot.

        Args:
            row: One value per column of any revision; its first value is replaced by the sequence number.
            at: The open slot's place.

        Returns:
            The row's sequence number: rows are numbered in order of completion.
        """
        buffer = self.buffer
        with self._lock:
            row[0] = sequence = self._next
            try:
                revision, length, pack = self._packers[len(row)]
                body = pack(*row)
            except (KeyError, struct.error, OverflowError, TypeError, ValueError):
                revision, length, body = self._pack_slowly(row)
            index = sequence % self._ring_rows
            start = self._ring_at + index * self._row_bytes
            PACK_FRAME(buffer, start + 8, crc32(body), revision, length)
            # Packed first and copied then: in place it is no faster, and a value that fails would leave half a row.
            body_at = start + FRAME_BYTES
            buffer[body_at : body_at + length] = body
            self._hashes[index] = row[SESSION_HASH]
            # Last, and one aligned store: whoever sees this word sees the row. The CRC, which covers the sequence
            # number as the body's first value, judges rows on machines that reorder stores.
            self._words[start >> 3] = sequence + 1
            self._next = sequence + 1
            if at != self.scratch:
                buffer[at] = OPEN_STATE_FREE
                self._free.append(at)
        return sequence

    def _pack_slowly(self, row: list[Any]) -> tuple[int, int, bytes]:
        """Pack a row that holds something its columns cannot: value by value, what does not fit becomes absent."""
        if len(row) not in self.plan.packers:
            self.plan.grow(row)
        revision, length, pack = self.plan.packers[len(row)]
        columns: tuple[Column, ...] = self.plan.revisions[revision].columns
        for index, column in enumerate(columns):
            row[index], held = coerce(row[index], column.kind)
            if not held:
                self.count("attribute_value")
        return revision, length, pack(*row)

    def publish(self, value: dict[str, Any]) -> bool:
        """Append an entry to the journal: a schema revision, or fingerprints that became known late.

        Args:
            value: JSON values.

        Returns:
            False when the journal is full.
        """
        head, body = encode_entry(value)
        with self._journal_lock:
            at = self._journal_at
            if at + ENTRY.size + len(body) > self.layout.schema + SCHEMA_BYTES - ENTRY.size:
                return False
            self.buffer[at + ENTRY.size : at + ENTRY.size + len(body)] = body
            self.buffer[at + 4 : at + ENTRY.size] = head[4:]
            self.buffer[at : at + 4] = head[:4]  # the length last: a reader takes 0 as the end
            self._journal_at = at + ENTRY.size + -(-len(body) // 8) * 8
        return True

    def write_status(self, status: dict[str, Any]) -> None:
        """Replace the status page; the oldest blocked episodes are left out when it does not fit.

        Args:
            status: JSON values; see docs/architecture.md.

        Raises:
            ValueError: If it does not fit even without them.
        """
        body = json.dumps(status, separators=(",", ":"), allow_nan=False).encode()
        while len(body) > STATUS_BYTES - STATUS.size:
            if not status.get("blocked"):
                raise ValueError(f"a status of {len(body)} bytes does not fit its page")
            status = {**status, "blocked": status["blocked"][1:]}
            body = json.dumps(status, separators=(",", ":"), allow_nan=False).encode()
        self._status_sequence += 1
        page = STATUS.pack(self._status_sequence, len(body), crc32(body)) + body
        self.buffer[self.layout.status : self.layout.status + len(page)] = page

    def close(self) -> None:
        """Give the mapping up once no row is being written; the file stays as it is."""
        with self._lock:
            self.abandon()

    def abandon(self) -> None:
        """Give the mapping up at once; for a forked child, in which a thread that held the lock does not exist."""
        self.unmap_core()
        with contextlib.suppress(BufferError):
            self._words.release()
            self._hashes.release()
            self._view.release()
            self.buffer.close()


assert COMMIT.size + BODY_FRAME.size == FRAME_BYTES  # noqa: S101
assert os.sysconf("SC_PAGESIZE") >= 4096  # noqa: S101
