"""Columns: their kinds, the ones every row has, and what a list of columns means in bytes.

A revision is a list of columns; later revisions only append. So an older row's bytes are a prefix of a newer row's,
which is what makes both growing a row in flight and reading old rows cheap.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "FIXED_COLUMNS",
    "KINDS",
    "NEVER",
    "NO_INT",
    "OUTCOMES",
    "Column",
    "Kind",
    "Revision",
    "compile_revision",
    "kind_of",
]

NEVER: Final = 2**64 - 1
NO_INT: Final = -(2**63)
OUTCOMES: Final = ("ok", "refused", "error", "degraded", "disconnected")


@dataclass(frozen=True, slots=True)
class Kind:
    """How one column is stored: its `struct` code, numpy type and the value that means absent."""

    code: str
    dtype: str
    absent: Any


KINDS: Final[dict[str, Kind]] = {
    "u64": Kind("Q", "<u8", 0),
    "start": Kind("Q", "<u8", NEVER),
    "u16": Kind("H", "<u2", 0),
    "u8": Kind("B", "u1", 0),
    # Lengths and token counts are never negative, so -1 can stand for absent and reads well.
    "count": Kind("q", "<i8", -1),
    "int": Kind("q", "<i8", NO_INT),
    "float": Kind("d", "<f8", float("nan")),
    "bool": Kind("B", "u1", 255),
    "str": Kind("I", "<u4", 0),
    "bytes32": Kind("32s", "S32", b""),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a row."""

    name: str
    kind: str


FIXED_COLUMNS: Final[tuple[Column, ...]] = tuple(
    Column(name, kind)
    for name, kind in (
        ("seq", "u64"),
        ("trace_hi", "u64"),
        ("trace_lo", "u64"),
        ("span_id", "u64"),
        ("parent_span_id", "u64"),
        ("start_unix_ns", "u64"),
        ("session_hash", "u64"),
        ("session", "bytes32"),
        ("method", "str"),
        ("client_release", "str"),
        ("device_type", "str"),
        ("agent_family", "str"),
        # Up to here in the order of an open slot: what is known at the start is written to both as one tuple.
        ("duration_ns", "u64"),
        ("batch_id", "u64"),
        ("http_status", "u16"),
        ("outcome", "u8"),
        ("flags", "u8"),
        ("input_length", "count"),
        ("tokens", "count"),
        ("confidence", "float"),
        ("route", "str"),
        ("model_version", "str"),
        ("label", "str"),
        ("reason", "str"),
        ("error_type", "str"),
    )
)


@dataclass(frozen=True, slots=True)
class Revision:
    """A compiled list of columns.

    Attributes:
        columns: The columns in order.
        packer: Packs one value per column.
        dtype: The same bytes as a numpy structured type (packed, little endian).
        template: One absent value per column.
    """

    columns: tuple[Column, ...]
    packer: struct.Struct
    dtype: np.dtype[np.void]
    template: tuple[Any, ...]

    def blank(self) -> npt.NDArray[np.void]:
        """Return one row, shape (1,), in which every value is absent."""
        return np.frombuffer(self.packer.pack(*self.template), self.dtype)


def compile_revision(columns: Sequence[Column]) -> Revision:
    """Return the revision for these columns.

    Args:
        columns: Columns in order, names unique.

    Raises:
        KeyError: If a kind is unknown.
        ValueError: If a name occurs twice.
    """
    kinds = [KINDS[column.kind] for column in columns]
    packer = struct.Struct("<" + "".join(kind.code for kind in kinds))
    dtype = np.dtype([(column.name, kind.dtype) for column, kind in zip(columns, kinds, strict=True)])
    return Revision(tuple(columns), packer, dtype, tuple(kind.absent for kind in kinds))


def kind_of(value: object) -> str | None:
    """Return the kind in which an attribute of this value is stored, or None if it is none that rows can hold.

    Args:
        value: The attribute's first value: bool, int, float, str, or numpy's scalars of these.
    """
    if isinstance(value, bool | np.bool_):  # before int: a bool is one
        return "bool"
    if isinstance(value, int | np.integer):
        return "int"
    if isinstance(value, float | np.floating):
        return "float"
    return "str" if isinstance(value, str) else None
