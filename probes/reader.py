"""The reading end of a ring file: any process, `pread` only, never a mapping.

A reader that maps the file would die by SIGBUS when it is truncated, and would keep the memory of removed files.

Cost      a `pread` per MiB and a CRC per row (0.6 us a row in batches of 500); `head` costs 15 small reads.
Error     a row is given only if its commit word and its CRC agree; what does not is counted as lost or torn.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from probes.folder import SUFFIX, is_locked
from probes.layout import (
    COMMIT,
    ENTRY,
    HEADER_BYTES,
    OPEN_SLOT_BYTES,
    SCHEMA_BYTES,
    STATUS,
    STATUS_BYTES,
    STRING_BYTES,
    STRING_ENTRIES,
    NotARing,
    RingError,
    UnknownVersion,
    decode_header,
)
from probes.open_slots import steady
from probes.row_check import Rows, assemble, join_rows, judge, name_sessions, revision_of, slots_of
from probes.schema import Column, Revision

__all__ = ["Batch", "Header", "NotARing", "RingError", "RingFile", "UnknownVersion", "list_rings"]

CHUNK_BYTES: Final = 1 << 20
STRINGS_A_LOOK: Final = 64  # the table is 256 KiB, and a service has a few dozen
META: Final[dict[str, type[Any]]] = {
    **dict.fromkeys(("service", "host", "boot_id", "ring_id", "build", "config", "model", "driver"), str),
    **dict.fromkeys(("pid", "worker", "started_unix_ns", "started_monotonic_ns"), int),
}


@dataclass(frozen=True, slots=True)
class Header:
    """What a ring file says about its worker.

    Attributes:
        service: Name of the service.
        host: Name of the machine.
        pid: Process id; in a container often 1, so never an identity.
        worker: Number of the worker, the lowest that was free when it started.
        boot_id: The machine's boot, 32 hex digits.
        ring_id: Random id of this file, 16 hex digits.
        started_unix_ns: When the file was opened, ns since 1970.
        started_monotonic_ns: The same moment on the machine's monotonic clock.
        build: Fingerprint of the code, "" if unknown; likewise config, model, driver.
        stages: Stage name -> parent stage, or None for the request itself.
        stage_names: Stage names by number; number 0 is "".
        columns: Column name -> kind (probes/schema.py).
    """

    service: str
    host: str
    pid: int
    worker: int
    boot_id: str
    ring_id: str
    started_unix_ns: int
    started_monotonic_ns: int
    build: str
    config: str
    model: str
    driver: str
    stages: Mapping[str, str | None] = field(default_factory=dict)
    stage_names: tuple[str, ...] = ("",)
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that were read at once.

    Attributes:
        rows: Structured array in the newest revision, in order of completion.
        cursor: Sequence number to go on from.
        lost: Rows that were overwritten before they were read.
        torn: Rows whose CRC or commit word was wrong.
    """

    rows: Rows
    cursor: int
    lost: int
    torn: int


def list_rings(directory: str | os.PathLike[str]) -> list[Path]:
    """Return the ring files of a folder, sorted by name; empty if there is no such folder.

    Args:
        directory: The folder.
    """
    try:
        return sorted(path for path in Path(directory).iterdir() if path.suffix == SUFFIX)
    except (FileNotFoundError, NotADirectoryError):
        return []


class RingFile:
    """A ring file opened for reading.

    Args:
        path: The file.

    Raises:
        NotARing: If it is no ring file, damaged or truncated.
        UnknownVersion: If it has another format version.
        OSError: If it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # Not blocking: somebody could have put a pipe there.
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self._meta, self.layout = decode_header(
                os.pread(self._fd, HEADER_BYTES, 0), os.fstat(self._fd).st_size, str(self.path)
            )
            self._journal_at = self.layout.schema
            self._revisions: list[Revision] = []
            self._stages: dict[str, str | None] = {}
            self._strings: list[str] = [""]
            self._header: Header | None = None
            self._follow_journal()
            if not self._revisions:
                raise NotARing(f"{self.path}: it has no columns")
        except BaseException:
            os.close(self._fd)
            raise

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> RingFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def header(self) -> Header:
        """What the file says about its worker, stages and columns included that came since it was opened."""
        self._follow_journal()
        if self._header is None:
            meta = self._meta
            self._header = Header(
                **{name: kind(meta.get(name, kind())) for name, kind in META.items()},
                stages=MappingProxyType(dict(self._stages)),
                stage_names=("", *self._stages),
                columns=MappingProxyType({column.name: column.kind for column in self._revisions[-1].columns}),
            )
        return self._header

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The rows' type in the newest revision."""
        self._follow_journal()
        return self._revisions[-1].dtype

    def head(self) -> int:
        """Return the next sequence number to be written, found by binary search over the commit words."""
        rows = self.layout.ring_rows
        # Slots up to the last written one are of one lap, those behind it of the lap before.
        first = self._word(0)
        if not first:
            return 0
        low, high = 0, rows - 1  # the last slot of this lap lies in low..high
        while low < high:
            middle = (low + high + 1) // 2
            # The lap may go on while we look; a newer word than expected is a written one as well.
            if self._word(middle) >= first + middle:
                low = middle
            else:
                high = middle - 1
        return first + low

    def read(self, cursor: int = 0, limit: int = 4096) -> Batch:
        """Return the rows from *cursor* on.

        Args:
            cursor: Sequence number of the first row wanted; 0 for the oldest there is.
            limit: Most rows to return.
        """
        self._follow_journal()
        head = self.head()
        start = min(max(cursor, head - self.layout.ring_rows, 0), head)
        lost = max(0, start - cursor) if cursor < head else 0
        stop = min(head, start + limit)
        parts: list[Rows] = []
        torn = 0
        step = max(1, CHUNK_BYTES // self.layout.row_bytes)
        position = start
        while position < stop:
            slot = position % self.layout.ring_rows
            count = min(step, stop - position, self.layout.ring_rows - slot)
            found, lost_here, torn_here = self._read_run(position, count)
            parts.append(found)
            lost += lost_here
            torn += torn_here
            position += count
        return Batch(name_sessions(join_rows(parts, self._revisions[-1])), stop, lost, torn)

    def find_hash(self, *session_hashes: int) -> Rows:
        """Return the rows of a session by scanning the column of hashes alone (8 bytes a row).

        Args:
            *session_hashes: `probes.folder.session_hashes` of the session id.
        """
        self._follow_journal()
        rows = self.layout.ring_rows
        wanted = np.array(session_hashes, "<u8")
        hashes = np.frombuffer(self._bytes(self.layout.hashes, 8 * rows), "<u8")
        found = self._at_slots(np.flatnonzero(np.isin(hashes, wanted)))
        # The row may be another one by now, or the column may be ahead of its row.
        kept: Rows = found[np.isin(found["session_hash"], wanted)]
        return kept

    def rows_at(self, sequences: Iterable[int]) -> Rows:
        """Return those of these rows that the file still holds, in order of completion.

        Args:
            sequences: Sequence numbers, in any order.
        """
        self._follow_journal()
        wanted = np.array(list(sequences), np.uint64)
        found = self._at_slots(np.unique(wanted % np.uint64(self.layout.ring_rows)).astype(np.int64))
        kept: Rows = found[np.isin(found["seq"], wanted)]
        return kept

    def _at_slots(self, slots: npt.NDArray[np.int64]) -> Rows:
        """Return the rows that lie in these slots, in order of completion."""
        size = self.layout.row_bytes
        step = max(1, CHUNK_BYTES // size)
        parts: list[Rows] = []
        for first in range(0, len(slots), step):
            places = self.layout.ring + slots[first : first + step] * size
            raw = self._copies(places)
            words = slots_of(raw, size)["word"]
            # An empty slot asks for the row before the first one, which it does not hold.
            parts.append(self._take(raw, places, words - np.uint64(1))[0])
        rows = name_sessions(join_rows(parts, self._revisions[-1]))
        return rows[np.argsort(rows["seq"], kind="stable")]

    def strings(self) -> list[str]:
        """Return the string table; the index is the id, and id 0, "absent", is ""."""
        while count := min(STRINGS_A_LOOK, STRING_ENTRIES - len(self._strings)):
            table = self._bytes(self.layout.strings + len(self._strings) * STRING_BYTES, count * STRING_BYTES)
            for at in range(0, len(table), STRING_BYTES):
                length = table[at]
                if not length:
                    return list(self._strings)
                self._strings.append(table[at + 1 : at + 1 + min(length, STRING_BYTES - 1)].decode("utf-8", "replace"))
        return list(self._strings)

    def open_slots(self) -> npt.NDArray[np.void]:
        """Return the requests in flight, in order of start; after the owner's death, those that never ended.

        Each has seq (a ticket, in order of start), trace_hi, trace_lo, span_id, parent_span_id, start_unix_ns,
        session_hash, session, stage (number into ``header.stage_names`` of the last stage entered), and the string ids
        method, client_release, device_type, agent_family.
        """
        size = self.layout.open_slots * OPEN_SLOT_BYTES
        first, second = (self._bytes(self.layout.open, size) for _ in range(2))
        return name_sessions(steady(first, second))

    def status(self) -> dict[str, Any] | None:
        """Return the status page, or None if none was written yet or it stays unreadable."""
        for _ in range(3):  # a page caught while it is rewritten is whole a moment later
            sequence, length, crc = STATUS.unpack(self._bytes(self.layout.status, STATUS.size))
            if not sequence:
                return None
            body = self._bytes(self.layout.status + STATUS.size, min(length, STATUS_BYTES - STATUS.size))
            if body and len(body) == length and zlib.crc32(body) == crc:
                status: dict[str, Any] = json.loads(body)
                return status
        return None

    def owner_alive(self) -> bool:
        """Return whether the process that writes the file is alive (it holds the file's lock)."""
        return is_locked(self.path)

    def _word(self, slot: int) -> int:
        return int.from_bytes(self._bytes(self.layout.ring + slot * self.layout.row_bytes, COMMIT.size), "little")

    def _bytes(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        while len(data) < size:
            more = os.pread(self._fd, size - len(data), offset + len(data))
            if not more:
                raise NotARing(f"{self.path}: truncated while it was read")
            data += more
        return data

    def _fill(self, target: memoryview, offset: int) -> None:
        done = 0
        while done < len(target):
            got = os.preadv(self._fd, [target[done:]], offset + done)
            if not got:
                raise NotARing(f"{self.path}: truncated while it was read")
            done += got

    def _copies(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return the slots that lie at these places of the file, one after the other."""
        size = self.layout.row_bytes
        raw = np.empty(len(places) * size, np.uint8)
        for index, place in enumerate(places.tolist()):
            self._fill(raw[index * size : (index + 1) * size].data, place)
        return raw

    def _read_run(self, sequence: int, count: int) -> tuple[Rows, int, int]:
        """Read *count* rows whose slots lie side by side; return them and how many are overwritten and torn."""
        size = self.layout.row_bytes
        at = self.layout.ring + sequence % self.layout.ring_rows * size
        raw = np.empty(count * size, np.uint8)
        self._fill(raw.data, at)
        return self._take(
            raw, np.arange(at, at + count * size, size), np.arange(sequence, sequence + count, dtype="<u8")
        )

    def _take(
        self, raw: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], sequences: npt.NDArray[np.uint64]
    ) -> tuple[Rows, int, int]:
        """Return the rows among copied slots, and how many are overwritten and torn.

        Args:
            raw: The slots' bytes; those that look torn are read once more.
            places: Where each slot lies in the file.
            sequences: Which row each should hold.
        """
        size = self.layout.row_bytes
        whole, newer = self._judge(raw, sequences)
        unsound = np.flatnonzero(~(whole | newer))
        if len(unsound):  # perhaps caught half-written: once more
            again = self._copies(places[unsound])
            whole[unsound], newer[unsound] = self._judge(again, sequences[unsound])
            raw.reshape(-1, size)[unsound] = again.reshape(-1, size)
        lost = int(newer.sum())
        torn = len(whole) - lost - int(whole.sum())
        return assemble(raw, size, whole, self._revisions), lost, torn

    def _judge(
        self, raw: npt.NDArray[np.uint8], sequences: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which slots hold their row, in a revision that is known and of its length, and which a later one."""
        whole, newer = judge(raw, self.layout.row_bytes, sequences)
        slots = slots_of(raw, self.layout.row_bytes)
        if whole.any() and int(slots["revision"][whole].max()) >= len(self._revisions):
            self._follow_journal()
        # A revision that the journal does not tell, since its entry is damaged: 0, which no row is long.
        sizes = np.array([*(revision.dtype.itemsize for revision in self._revisions), 0])
        return whole & (sizes[np.minimum(slots["revision"], len(sizes) - 1)] == slots["length"]), newer

    def _follow_journal(self) -> None:
        """Read the journal's entries that came since the last look."""
        end = self.layout.schema + SCHEMA_BYTES
        while self._journal_at + ENTRY.size <= end:
            length, crc = ENTRY.unpack(self._bytes(self._journal_at, ENTRY.size))
            if not length or self._journal_at + ENTRY.size + length > end:
                return
            body = self._bytes(self._journal_at + ENTRY.size, length)
            if zlib.crc32(body) != crc:
                return  # half-written, or damaged: rows of that revision will count as torn
            try:
                self._apply(json.loads(body))
            except (KeyError, TypeError, ValueError) as error:
                raise NotARing(f"{self.path}: its journal is damaged ({error})") from error
            self._journal_at += ENTRY.size + -(-length // 8) * 8

    def _apply(self, entry: dict[str, Any]) -> None:
        self._header = None
        self._meta.update(entry.get("identity", {}))
        if "revision" in entry:
            before = self._revisions[-1].columns if self._revisions else ()
            added = tuple(Column(name, kind) for name, kind in entry["columns"])
            self._revisions.append(revision_of((*before, *added)))
            self._stages.update({name: parent or None for name, parent, _ in entry["stages"]})
