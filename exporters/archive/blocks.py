"""Blocks of rows as the archive packs them, and what is known of a block before it is unpacked; no files here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.names import OUTCOMES
from probes.reader import Header
from probes.row_check import revision_of
from probes.schema import Column

__all__ = ["INDEXED", "BlockInfo", "Part", "blocks_of", "describe", "pack", "part_of", "unpack"]

Rows = npt.NDArray[Any]

# The columns that a look-up scans: a segment holds them apart, and 0 in its blocks.
INDEXED: Final = ("session_hash", "trace_lo")
BLOCK_ROWS: Final = 1024
_REFUSED: Final = OUTCOMES.index("refused")
_GOOD: Final = (OUTCOMES.index("ok"), OUTCOMES.index("degraded"))
_HEADER_FIELDS: Final = tuple(
    field.name for field in fields(Header) if field.name not in ("stages", "stage_names", "columns")
)


@dataclass(frozen=True)
class Part:
    """Rows of one ring file, for or from a segment.

    Attributes:
        ring: Name of the ring file.
        header: Its header, with the columns that the rows have, or more.
        strings: Its string table.
        rows: The rows, in order of their sequence number.
        next_seq: The sequence number up to which the ring file is archived with these rows.
    """

    ring: str
    header: Header
    strings: Sequence[str]
    rows: Rows
    next_seq: int


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """What is known of a block before it is inflated.

    Attributes:
        part: Index of its ring file in the segment.
        at: Position of its first row in the segment.
        rows: How many it has.
        first_seq, last_seq: Its rows' sequence numbers.
        start_unix_ns, end_unix_ns: When its first request started and its last ended.
        longest_ns: Duration of its slowest request.
        faults, refused: Requests that went wrong: by the service's fault or the caller's leaving, and refused ones.
    """

    part: int
    at: int
    rows: int
    first_seq: int
    last_seq: int
    start_unix_ns: int
    end_unix_ns: int
    longest_ns: int
    faults: int
    refused: int


def blocks_of(parts: Sequence[Part]) -> list[tuple[BlockInfo, Rows]]:
    """Return the parts' rows in blocks, with what is to be known of each."""
    found: list[tuple[BlockInfo, Rows]] = []
    at = 0
    for index, part in enumerate(parts):
        for begin in range(0, len(part.rows), BLOCK_ROWS):
            rows = part.rows[begin : begin + BLOCK_ROWS]
            ends = rows["start_unix_ns"] + rows["duration_ns"]
            refused = int((rows["outcome"] == _REFUSED).sum())
            info = BlockInfo(
                part=index,
                at=at,
                rows=len(rows),
                first_seq=int(rows["seq"].min()),
                last_seq=int(rows["seq"].max()),
                start_unix_ns=int(rows["start_unix_ns"].min()),
                end_unix_ns=int(ends.max()),
                longest_ns=int(rows["duration_ns"].max()),
                faults=int((~np.isin(rows["outcome"], _GOOD)).sum()) - refused,
                refused=refused,
            )
            found.append((info, rows))
            at += len(rows)
    return found


def pack(rows: Rows) -> Rows:
    """Return the rows' bytes as a block holds them."""
    flat = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    first = flat[0].copy()
    # Most bytes are the same in all rows (absent columns, high bytes): left out, they cost no inflating either.
    differs = (flat != first).any(axis=0)
    places: Mapping[str, Any] = rows.dtype.fields or {}
    for column in INDEXED:
        kind, at = places[column][:2]
        first[at : at + kind.itemsize], differs[at : at + kind.itemsize] = 0, False
    return np.concatenate([first, differs.view(np.uint8), flat[:, differs].T.reshape(-1)])


def unpack(packed: Rows, count: int, dtype: np.dtype[Any]) -> Rows:
    """Return the rows of a block.

    Raises:
        ValueError: If it has another size than it should.
    """
    size = dtype.itemsize
    if packed.dtype != np.uint8 or packed.ndim != 1:
        raise ValueError("a block is bytes")
    differs = packed[size : 2 * size] != 0
    planes = packed[2 * size :].reshape(int(differs.sum()), count)
    flat = np.tile(packed[:size], (count, 1))
    flat[:, differs] = planes.T
    return flat.reshape(-1).view(dtype)


def describe(part: Part) -> dict[str, Any]:
    """Return what is to be known of a ring file as JSON values."""
    return {
        "ring": part.ring,
        "next_seq": part.next_seq,
        "header": {name: getattr(part.header, name) for name in _HEADER_FIELDS},
        "stages": dict(part.header.stages),
        # Those that the rows have: the header may be newer.
        "columns": [[name, part.header.columns[name]] for name in part.rows.dtype.names or ()],
        "strings": list(part.strings),
    }


def part_of(described: Mapping[str, Any]) -> Part:
    """Return a part without rows, but of the rows' type."""
    kinds = [(str(name), str(kind)) for name, kind in described["columns"]]
    stages = {str(name): parent if parent is None else str(parent) for name, parent in described["stages"].items()}
    header = Header(
        **{name: described["header"][name] for name in _HEADER_FIELDS},
        stages=MappingProxyType(stages),
        stage_names=("", *stages),
        columns=MappingProxyType(dict(kinds)),
    )
    dtype = revision_of(tuple(Column(name, kind) for name, kind in kinds)).dtype
    strings = [str(text) for text in described["strings"]]
    return Part(str(described["ring"]), header, strings, np.empty(0, dtype=dtype), int(described["next_seq"]))
