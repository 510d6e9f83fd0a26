"""All rows of a folder as one table of decoded columns: what look-up and triage read.

Bounded: by the folder, which holds at most (live workers + kept last flights) x ring rows; of the archive, by the
window that is asked for and by a number of rows, the latest; about 500 bytes a row, three times that while joined.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.aggregate import NEVER
from exporters.archive.blocks import BlockInfo, Part
from exporters.archive.reader import Archive
from exporters.names import OUTCOMES
from exporters.ring_folder import READ_ERRORS, open_rings
from probes.reader import Header, RingFile
from probes.row_check import join_rows
from probes.schema import KINDS

__all__ = ["OpenRequest", "RingInfo", "RowTable", "load_rows", "open_requests"]

Array = npt.NDArray[Any]

_log = logging.getLogger(__name__)

# Header fields that every row gets as a column.
_PER_RING: Final = ("build", "config", "model", "host", "service")


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that started and has not ended: in flight if *alive*, else it never will.

    Attributes:
        trace_id, span_id, parent_span_id: Hex; the parent is "" when there is none.
        session, session_hash: Whose it is.
        start_unix_ns: When it started.
        stage: Last stage that it reached; "" for none.
        alive: Whether its worker lives.
        ring, worker, pid: Where it ran.
        method, client_release, device_type, agent_family: As in a row; "" when absent.
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    session: str
    session_hash: int
    start_unix_ns: int
    stage: str
    alive: bool
    ring: str
    worker: int
    pid: int
    method: str = ""
    client_release: str = ""
    device_type: str = ""
    agent_family: str = ""


@dataclass(frozen=True, slots=True)
class RingInfo:
    """One ring file.

    Attributes:
        header: What it says about its worker.
        alive: Whether the worker lives.
        head: Rows ever written.
        held: Rows that it still holds.
    """

    header: Header
    alive: bool
    head: int
    held: int


@dataclass(frozen=True)
class RowTable:
    """Rows of all ring files, ordered by start.

    Attributes:
        columns: Name -> one value per row. Text columns hold str ("" when absent), `session` too; numbers are as in the
            row, absent values included (see `numbers`). Added per row: `worker`, `ring`, `build`, `config`, `model`,
            `host`, `service`.
        parents: Stage -> parent stage, None for the request itself.
        open: Requests in flight or never ended.
        statuses: Ring -> its worker's last status page, of workers that wrote one.
        rings: Ring -> what is known about the file.
        losses: Why something is missing -> how many: `torn` (rows), `unreadable` (files); when the archive is
            asked, `segments` (of it that cannot be read).
        overwritten: Rows that were too old for the rings to hold still: not lost, for the exporter has counted them.
    """

    columns: Mapping[str, Array]
    parents: Mapping[str, str | None] = field(default_factory=dict)
    open: tuple[OpenRequest, ...] = ()
    statuses: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    rings: Mapping[str, RingInfo] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)
    overwritten: int = 0

    def __len__(self) -> int:
        return len(self.columns["seq"]) if "seq" in self.columns else 0

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of all stages that some worker declared."""
        return tuple(self.parents)

    @property
    def outcomes(self) -> Array:
        """The outcome of each row by name."""
        names = np.array([*OUTCOMES, "error"], dtype=object)
        return names[np.minimum(self.columns["outcome"], len(OUTCOMES))] if len(self) else np.array([], dtype=object)

    @property
    def end_unix_ns(self) -> Array:
        """When each request ended."""
        return self.columns["start_unix_ns"] + self.columns["duration_ns"]

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of numbers as floats, NaN where it is absent or the table has no such column."""
        if name not in self.columns:
            return np.full(len(self), np.nan)
        values = self.columns[name]
        if values.dtype == object:
            return np.full(len(self), np.nan)
        found = values.astype(np.float64)
        if name in ("input_length", "tokens"):
            found[values < 0] = np.nan
        elif name.endswith("/start_ns"):
            found[values == NEVER] = np.nan
        elif values.dtype.kind == "i":
            found[values == -(2**63)] = np.nan
        elif values.dtype == np.uint8 and "/" in name:
            found[values == 255] = np.nan
        return found

    def stage(self, name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return start (after the request's) and duration of a stage per row, in seconds; NaN where it did not run."""
        if f"{name}/start_ns" not in self.columns:
            absent = np.full(len(self), np.nan)
            return absent, absent.copy()
        starts, durations = self.columns[f"{name}/start_ns"], self.columns[f"{name}/duration_ns"]
        ran = starts != NEVER
        return np.where(ran, starts / 1e9, np.nan), np.where(ran, durations / 1e9, np.nan)

    def where(self, mask: Array) -> RowTable:
        """Return the table with the rows that *mask* (booleans or indexes) selects; all else stays."""
        chosen = {name: values[mask] for name, values in self.columns.items()}
        return RowTable(chosen, self.parents, self.open, self.statuses, self.rings, self.losses, self.overwritten)

    def trace_id(self, row: int) -> str:
        """Return the trace id of one row, 32 hex digits."""
        return f"{int(self.columns['trace_hi'][row]):016x}{int(self.columns['trace_lo'][row]):016x}"


def load_rows(
    ring_dir: Path | str,
    since_ns: int | None = None,
    until_ns: int | None = None,
    *,
    archive_dir: Path | str | None = None,
    archive_until_ns: int | None = None,
    most_archived: int = 200_000,
    most_held: int | None = None,
) -> RowTable:
    """Return the rows of all ring files, live and last flight, and of the archive those that left their rings.

    Args:
        ring_dir: Folder of ring files; a missing one is an empty table.
        since_ns: Only requests that ended at or after this, ns since 1970.
        until_ns: Only requests that started at or before this.
        archive_dir: Folder of the archive's segments; None for the rings alone.
        archive_until_ns: As *until_ns*, for the archive alone, of which nobody wants all hours that came after.
        most_archived: Rows of the archive, at most; the latest are taken.
        most_held: Rows of each ring, at most, the latest; all by default. Older ones count as overwritten.
    """
    parts: list[tuple[dict[str, Array], dict[str, str]]] = []
    parents: dict[str, str | None] = {}
    found_open: list[OpenRequest] = []
    statuses: dict[str, dict[str, Any]] = {}
    rings: dict[str, RingInfo] = {}
    losses = {"torn": 0, "unreadable": 0}
    held: dict[str, Array] = {}
    older = 0
    for ring in open_rings(Path(ring_dir)):
        if not isinstance(ring, RingFile):
            losses["unreadable"] += 1
            continue
        try:
            # Asked before the rows are read: a worker that ends meanwhile is then shown as it was.
            alive = ring.owner_alive()
            found_open += open_requests(ring, alive)
            rows, overwritten, torn = _all_rows(ring, most_held)
            header, name, status = ring.header, ring.header.ring_id, ring.status()
            parts.append(_decoded(rows, header, ring.strings(), since_ns, until_ns))
        except READ_ERRORS as error:
            _log.warning("ring file left out: %s", error)
            losses["unreadable"] += 1
            continue
        parents |= header.stages
        held[ring.path.name] = rows["seq"]
        rings[name] = RingInfo(header, alive, overwritten + torn + len(rows), len(rows))
        if status is not None:
            statuses[name] = status
        older += overwritten
        losses["torn"] += torn
    if archive_dir is not None:
        archive = Archive(Path(archive_dir))
        window = since_ns, archive_until_ns if until_ns is None else until_ns
        # Who asks for a sample of the rings wants one of the archive.
        level = logging.WARNING if most_held is None else logging.DEBUG
        for part in _archived(archive, held, window, most_archived, level):
            parts.append(_decoded(part.rows, part.header, part.strings, since_ns, until_ns))
            parents = dict(part.header.stages) | parents
        losses["segments"] = len(archive.unreadable)
    return RowTable(_joined(parts), parents, tuple(found_open), statuses, rings, losses, older)


def open_requests(ring: RingFile, alive: bool) -> list[OpenRequest]:
    """Return the requests of a ring file that have not ended.

    Args:
        ring: The file.
        alive: Whether its worker lives.
    """
    slots = ring.open_slots()
    if not len(slots):
        return []
    header, strings = ring.header, ring.strings()
    names = header.stage_names

    def text(index: int) -> str:
        return strings[index] if index < len(strings) else ""

    return [
        OpenRequest(
            trace_id=f"{int(slot['trace_hi']):016x}{int(slot['trace_lo']):016x}",
            span_id=f"{int(slot['span_id']):016x}",
            parent_span_id=f"{int(slot['parent_span_id']):016x}" if slot["parent_span_id"] else "",
            session=bytes(slot["session"]).decode("ascii", "replace"),
            session_hash=int(slot["session_hash"]),
            start_unix_ns=int(slot["start_unix_ns"]),
            stage=names[slot["stage"]] if slot["stage"] < len(names) else "",
            alive=alive,
            ring=header.ring_id,
            worker=header.worker,
            pid=header.pid,
            method=text(int(slot["method"])),
            client_release=text(int(slot["client_release"])),
            device_type=text(int(slot["device_type"])),
            agent_family=text(int(slot["agent_family"])),
        )
        for slot in slots
    ]


def _archived(
    archive: Archive,
    held: Mapping[str, Array],
    window: tuple[int | None, int | None],
    room: int,
    level: int,
) -> Iterator[Part]:
    """Yield the archived rows that are in none of the rings, the latest first, a bounded number.

    Args:
        archive: The archive.
        held: Ring -> sequence numbers that its file gave.
        window: Since and until, ns since 1970; None for open ends.
        room: Rows, at most.
        level: How loudly to say that there were more.
    """
    lowest = {name: int(seqs.min()) for name, seqs in held.items() if len(seqs)}

    def left(ring: str, info: BlockInfo) -> bool:
        return ring not in lowest or info.first_seq < lowest[ring]

    for part in archive.window(*window, left):
        here = held.get(part.ring)
        rows = part.rows if here is None else part.rows[~np.isin(part.rows["seq"], here)]
        if len(rows) > room:
            _log.log(level, "rows of the archive left out: there are more in the window than fit; narrow it")
            yield replace(part, rows=rows[len(rows) - room :])
            return
        room -= len(rows)
        yield replace(part, rows=rows)


def _all_rows(ring: RingFile, most: int | None) -> tuple[Array, int, int]:
    """Return the rows that the file holds, the latest *most*, how many older ones there were, and how many are torn."""
    # A writer that is faster than we are would keep us for ever; what it writes meanwhile is for the next look.
    head = ring.head()
    cursor = 0 if most is None else max(0, head - most)
    parts, lost, torn = [], cursor, 0
    while cursor < head:
        batch = ring.read(cursor, 16384)
        parts.append(batch.rows)
        cursor, lost, torn = batch.cursor, lost + batch.lost, torn + batch.torn
    if not parts:
        return ring.read(head, 0).rows, lost, 0
    newest = ring.read(cursor, 0).rows.dtype
    if all(part.dtype == newest for part in parts):
        return join_rows(parts), lost, torn
    # The schema grew between two reads: read once more in the newest form.
    whole = ring.read(0, ring.layout.ring_rows)
    return whole.rows, whole.lost, whole.torn


def _decoded(
    rows: Array, header: Header, texts: Sequence[str], since_ns: int | None, until_ns: int | None
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the columns of the rows in the time window, texts decoded, and each column's kind."""
    # By overlap: a request that is slow enough to matter often started before the window.
    ends = rows["start_unix_ns"] + rows["duration_ns"]
    inside = np.ones(len(rows), dtype=bool)
    if since_ns is not None:
        inside &= ends >= max(0, since_ns)
    if until_ns is not None:
        inside &= rows["start_unix_ns"] <= max(0, until_ns)
    rows = rows[inside]
    strings = np.array(texts, dtype=object)
    kinds = {name: header.columns[name] for name in rows.dtype.names or ()}
    columns: dict[str, Array] = {}
    for name, kind in kinds.items():
        values = rows[name]
        # Copied out of the rows, so that a table of few columns does not keep whole rows in memory.
        if kind == "str":
            values = np.where(values < len(strings), strings[np.minimum(values, len(strings) - 1)], "")
        elif kind == "bytes32":
            values = np.array([value.decode("ascii", "replace") for value in values.tolist()], dtype=object)
        else:
            values = np.ascontiguousarray(values)
        columns[name] = values
    columns["worker"] = np.full(len(rows), header.worker, dtype=np.int64)
    columns["ring"] = np.full(len(rows), header.ring_id, dtype=object)
    for name in _PER_RING:
        columns[name] = np.full(len(rows), getattr(header, name), dtype=object)
    return columns, kinds


def _as_objects(values: Array, kind: str) -> Array:
    """Return a column as Python objects, None where it is absent."""
    absent = np.isnan(values) if kind == "float" else values == (KINDS[kind].absent if kind != "str" else "")
    objects = values.astype(object)
    objects[absent] = None
    return objects


def _joined(parts: list[tuple[dict[str, Array], dict[str, str]]]) -> dict[str, Array]:
    """Return the columns of all parts under each other, absent values where a part has no such column."""
    names = list(dict.fromkeys(name for columns, _ in parts for name in columns))
    joined: dict[str, Array] = {}
    for name in names:
        kinds = {kinds.get(name) for columns, kinds in parts if name in columns}
        # Two workers may have given one attribute different types; then it is kept as Python objects, None for absent.
        mixed = len(kinds) > 1
        pieces = []
        for columns, own in parts:
            values = columns.get(name)
            if values is None:
                kind = own.get(name) or next(iter(kinds)) or "str"
                fill = "" if kind in ("str", "bytes32") or mixed else KINDS[kind].absent
                dtype = object if fill == "" else np.dtype(KINDS[kind].dtype)
                values = np.full(len(columns["seq"]), fill, dtype=dtype)
            pieces.append(_as_objects(values, own.get(name, "str")) if mixed else values)
        joined[name] = np.concatenate(pieces)
    if joined:
        order = np.argsort(joined["start_unix_ns"], kind="stable")
        joined = {name: values[order] for name, values in joined.items()}
    return joined
