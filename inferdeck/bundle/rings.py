"""Ring files for a bundle: written anew with the rows of the window alone, session ids replaced by their keyed hashes.

The folder's key stays behind, so that a hash leads back to a session only where the rows came from.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.archive.blocks import Part
from inferdeck.bundle.redact import Redactor
from inferdeck.stack.state import make_private_folder
from probes.layout import (
    FRAME,
    OPEN_SLOT_BYTES,
    SCHEMA_BYTES,
    STATUS,
    STATUS_BYTES,
    STRING_BYTES,
    encode_entry,
    encode_header,
    plan_layout,
)
from probes.open_slots import OPEN_DTYPE
from probes.reader import Header, RingError, RingFile, list_rings
from probes.schema import Column, compile_revision

__all__ = ["RingCopies", "copy_window"]

Rows = npt.NDArray[Any]

# 100,000 rows of 700 bytes are 70 MB unpacked: fifteen minutes of 100 requests a second
MOST_ROWS = 100_000
RING_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}\.ring")
META = (
    "service", "host", "pid", "worker", "boot_id", "ring_id", "started_unix_ns", "started_monotonic_ns",
    "build", "config", "model", "driver",
)  # fmt: skip


@dataclass
class RingCopies:
    """What was copied.

    Attributes:
        alive: File name -> whether its owner was alive, for `inferdeck.drill.evidence.hold_alive`.
        rows: Rows copied.
        left_out: Older rows of the window beyond what a bundle may hold.
        unreadable: Files that could not be read.
    """

    alive: dict[str, bool] = field(default_factory=dict)
    rows: int = 0
    left_out: int = 0
    unreadable: list[str] = field(default_factory=list)


@dataclass
class _Worker:
    """What is known of one ring file, be it from the file or from the archive."""

    header: Header
    strings: Sequence[str]
    rows: Rows
    slots: Rows
    status: dict[str, Any] | None = None
    alive: bool = False


def copy_window(
    ring_dir: Path,
    target: Path,
    since_ns: int,
    redactor: Redactor,
    *,
    most: int = MOST_ROWS,
    archived: Iterable[Part] = (),
) -> RingCopies:
    """Copy the rows that ended at or after a time, those after the window too: they are signs of life.

    Args:
        ring_dir: Folder of the rows.
        target: Where to; made 0700.
        since_ns: Start of the window, ns since 1970.
        redactor: Learns the sessions, and masks what else the files hold.
        most: Most rows of all files together.
        archived: What the exporter archived of the window, newest first, for what the rings no longer hold.
    """
    make_private_folder(target)
    copies = RingCopies()
    workers = _from_rings(ring_dir, since_ns, copies.unreadable)
    _add_archived(workers, archived, since_ns, most)
    for name, worker in workers.items():
        # each worker its share: the one that wrote most must not push the others out
        share = max(1, most // len(workers))
        rows, over = worker.rows[-share:], max(0, len(worker.rows) - share)
        for found in (rows, worker.slots):
            names = (bytes(one).decode("ascii", "replace") for one in found["session"].tolist())
            redactor.know(zip(names, found["session_hash"].tolist(), strict=True))
        write_ring(
            target / name,
            worker.header,
            rows,
            worker.strings,
            slots=worker.slots,
            status=worker.status,
            redactor=redactor,
        )
        copies.alive[name] = worker.alive
        copies.rows += len(rows)
        copies.left_out += over
    return copies


def _from_rings(ring_dir: Path, since_ns: int, unreadable: list[str]) -> dict[str, _Worker]:
    workers = {}
    for path in list_rings(ring_dir):
        try:
            with RingFile(path) as ring:
                # asked before the rows are read: an owner that dies meanwhile was alive at that time
                alive = ring.owner_alive()
                slots, status = ring.open_slots(), ring.status()
                rows = _ended_since(ring.read(0, ring.layout.ring_rows).rows, since_ns)
                workers[path.name] = _Worker(ring.header, ring.strings(), rows, slots, status, alive)
        except (RingError, OSError, ValueError):
            unreadable.append(path.name)
    return workers


def _add_archived(workers: dict[str, _Worker], archived: Iterable[Part], since_ns: int, most: int) -> None:
    """Put archived rows in front of those that the rings hold; a row that is in both is taken once."""
    left = most - sum(len(worker.rows) for worker in workers.values())
    for part in archived:
        if left <= 0:
            break
        rows = _ended_since(part.rows, since_ns)
        # it becomes the name of a file, and a segment is a file that others may have damaged
        if not RING_NAME.fullmatch(part.ring):
            continue
        if part.ring not in workers:
            workers[part.ring] = _Worker(part.header, part.strings, rows[:0], np.zeros(0, OPEN_DTYPE))
        worker = workers[part.ring]
        rows = rows[~np.isin(rows["seq"], worker.rows["seq"])]
        left -= len(rows)
        # revisions only append: the longer row has all columns, and its header and texts know the shorter one's
        if _columns(rows.dtype) > _columns(worker.rows.dtype):
            worker.header, worker.strings = part.header, part.strings
        worker.rows = _in_order(rows, worker.rows, worker.header)


def _in_order(first: Rows, second: Rows, header: Header) -> Rows:
    """Return both by sequence number, in the columns of the one that has more; the other's are absent there."""
    newest = max(first.dtype, second.dtype, key=_columns)
    names = newest.names or ()
    blank = compile_revision([Column(name, header.columns[name]) for name in names]).blank()
    joined = np.repeat(blank, len(first) + len(second))
    for at, rows in ((0, first), (len(first), second)):
        for name in rows.dtype.names or ():
            joined[name][at : at + len(rows)] = rows[name]
    ordered: Rows = joined[np.argsort(joined["seq"], kind="stable")]
    return ordered


def _columns(dtype: np.dtype[Any]) -> int:
    return len(dtype.names or ())


def _ended_since(rows: Rows, since_ns: int) -> Rows:
    found: Rows = rows[rows["start_unix_ns"] + rows["duration_ns"] >= since_ns]
    return found


def write_ring(
    path: Path,
    header: Header,
    rows: Rows,
    strings: Sequence[str],
    *,
    slots: Rows,
    status: dict[str, Any] | None,
    redactor: Redactor,
) -> None:
    """Write a ring file that holds these rows and nothing else.

    Args:
        path: The file.
        header: What the original says about its worker.
        rows: Rows in the newest revision of the original, in order.
        strings: Its string table.
        slots: Its requests in flight.
        status: Its status page.
        redactor: Masks texts.
    """
    size = rows.dtype.itemsize
    row_bytes = max(512, -(-(FRAME.size + size) // 8) * 8)
    layout = plan_layout(row_bytes, max(16, len(rows)), max(1, len(slots)))
    redactor = redactor.nameless()
    with path.open("xb") as file:
        path.chmod(0o600)
        # sparse is fine here: nobody maps a copy
        file.truncate(layout.total)

        def put(at: int, content: bytes) -> None:
            file.seek(at)
            file.write(content)

        put(0, encode_header({name: getattr(header, name) for name in META}, layout))
        put(layout.schema, _journal(header, rows.dtype))
        if status is not None:
            put(layout.status, _status_page(redactor.value(status)))
        put(layout.strings, b"".join(_string(redactor.text(text) if text else "") for text in strings))
        masked = slots.copy()
        masked["session"] = _hashed(masked["session_hash"])
        put(layout.open, masked.tobytes()[: len(slots) * OPEN_SLOT_BYTES])
        put(layout.hashes, rows["session_hash"].astype("<u8").tobytes())
        put(layout.ring, b"".join(_frames(rows, row_bytes)))


def _frames(rows: Rows, row_bytes: int) -> list[bytes]:
    """Return the rows renumbered from 0, framed and padded."""
    rows = rows.copy()
    # readers find a row's slot by its number, so that a part of a ring must be numbered anew
    rows["seq"] = np.arange(len(rows))
    rows["session"] = _hashed(rows["session_hash"])
    size, framed = rows.dtype.itemsize, []
    for number, body in enumerate(rows.reshape(-1, 1)):
        raw = body.tobytes()
        framed.append((FRAME.pack(number + 1, zlib.crc32(raw), 0, size) + raw).ljust(row_bytes, b"\0"))
    return framed


def _hashed(hashes: Rows) -> Rows:
    """Return the hashes in hexadecimal where a session's id would stand; 0 is nobody's."""
    return np.array([f"{number:016x}".encode() if number else b"" for number in hashes.tolist()], dtype="S32")


def _journal(header: Header, dtype: np.dtype[Any]) -> bytes:
    """Return a journal of one revision that has all columns."""
    names = dtype.names or ()
    entry = {
        "revision": 0,
        "columns": [[name, header.columns[name]] for name in names],
        "stages": [[name, parent or "", f"{name}/cpu_ns" in names] for name, parent in header.stages.items()],
    }
    head, body = encode_entry(entry)
    if len(head) + len(body) > SCHEMA_BYTES:
        raise ValueError(f"{len(names)} columns do not fit a journal")
    return head + body


def _status_page(status: object) -> bytes:
    body = json.dumps(status, separators=(",", ":")).encode()
    if len(body) > STATUS_BYTES - STATUS.size:
        # masking may have made it longer; without its stacks it always fits
        bare = {**status, "blocked": [], "blockers": []} if isinstance(status, dict) else {}
        body = json.dumps(bare, separators=(",", ":")).encode()
    return STATUS.pack(1, len(body), zlib.crc32(body)) + body


def _string(text: str) -> bytes:
    raw = text.encode()[: STRING_BYTES - 1]
    return bytes([len(raw)]) + raw.ljust(STRING_BYTES - 1, b"\0")
