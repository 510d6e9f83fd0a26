"""How one row reads as a tree of spans: which column is which span's start, duration or attribute.

Worked out once per schema revision; `otlp` (bytes) and `lookup` (views) both follow it, so that they never disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from exporters.aggregate import NEVER, text_of
from exporters.names import OUTCOMES
from probes import span_ids

__all__ = ["RowPlan", "StagePlan", "Value", "stage_span_id"]

Value = str | bool | int | float


# Column of every row -> span attribute. OpenTelemetry's semantic conventions where they have a name, ours elsewhere.
ROOT_ATTRIBUTES: Final[Mapping[str, str]] = {
    "method": "http.request.method",
    "route": "http.route",
    "http_status": "http.response.status_code",
    "error_type": "error.type",
    "input_length": "input_length",
    "tokens": "tokens",
    "confidence": "confidence",
    "label": "label",
    "model_version": "model_version",
    "client_release": "client_release",
    "device_type": "device_type",
    "agent_family": "user_agent.name",
    "reason": "reason",
    "batch_id": "batch_id",
}
# Columns whose absent value is not that of their type (docs/architecture.md, section 2).
_ABSENT: Final[Mapping[str, int]] = {"input_length": -1, "tokens": -1, "batch_id": 0, "http_status": 0}
_LOW_QUALITY: Final = 4
_GENERATED: Final = 1


@dataclass(frozen=True)
class _Attribute:
    """One attribute: its key, its place in the row, and how absence looks."""

    key: str
    place: int
    kind: str
    absent: int


@dataclass(frozen=True)
class StagePlan:
    """One stage of a row.

    Attributes:
        name: The stage's name, which is the span's.
        parent: Index of the parent stage in `RowPlan.stages`, -1 for the request itself.
        salt: What makes its span id differ from that of its siblings.
        start, duration, cpu: Places of the columns; *cpu* is -1 when it is not measured.
        attributes: Its attributes.
        status: Place of a whole number called status; -1 when there is none.
    """

    name: str
    parent: int
    salt: int
    start: int
    duration: int
    cpu: int
    attributes: tuple[_Attribute, ...]
    status: int = -1


class RowPlan:
    """Reads rows of one dtype, given as tuples (`rows.tolist()`)."""

    def __init__(self, dtype: np.dtype[Any], parents: Mapping[str, str | None]) -> None:
        """Work out the plan.

        Args:
            dtype: The rows' type.
            parents: Stage -> parent stage, None or empty for the request itself.
        """
        self.names: Sequence[str] = dtype.names or ()
        self.place = {name: place for place, name in enumerate(self.names)}
        known = [stage for stage in parents if f"{stage}/start_ns" in self.place]
        index = {stage: position for position, stage in enumerate(known)}
        self.stages = tuple(
            StagePlan(
                name=stage,
                parent=index.get(parents[stage] or "", -1),
                salt=span_ids.stage_salt(stage),
                start=self.place[f"{stage}/start_ns"],
                duration=self.place[f"{stage}/duration_ns"],
                cpu=self.place.get(f"{stage}/cpu_ns", -1),
                attributes=self._attributes(dtype, f"{stage}/", {"start_ns", "duration_ns", "cpu_ns"}),
                status=_whole_number(dtype, f"{stage}/status"),
            )
            for stage in known
        )
        self._root = tuple(
            _attribute(key, dtype, column, self.place[column])
            for column, key in ROOT_ATTRIBUTES.items()
            if column in self.place
        ) + self._attributes(dtype, "request/", set())

    def _attributes(self, dtype: np.dtype[Any], prefix: str, reserved: set[str]) -> tuple[_Attribute, ...]:
        """Return the attributes whose columns start with *prefix*."""
        return tuple(
            _attribute(name.removeprefix(prefix), dtype, name, place)
            for name, place in self.place.items()
            if name.startswith(prefix) and name.removeprefix(prefix) not in reserved
        )

    def root_attributes(self, row: Sequence[Any], strings: Sequence[str]) -> Iterator[tuple[str, Value]]:
        """Yield the request's attributes that are there; the session id is left to the caller."""
        outcome = row[self.place["outcome"]]
        yield "outcome", OUTCOMES[outcome] if outcome < len(OUTCOMES) else "error"
        flags = row[self.place["flags"]]
        if flags & _LOW_QUALITY:
            yield "low_quality_input", True
        if flags & _GENERATED:
            yield "session_id_generated", True
        yield from _present(self._root, row, strings)

    def stage_attributes(
        self, stage: StagePlan, row: Sequence[Any], strings: Sequence[str]
    ) -> Iterator[tuple[str, Value]]:
        """Yield a stage's attributes that are there; CPU time in seconds."""
        if stage.cpu >= 0 and row[stage.cpu]:
            yield "cpu_seconds", row[stage.cpu] / 1e9
        yield from _present(stage.attributes, row, strings)

    def failed(self, stage: StagePlan, row: Sequence[Any]) -> bool:
        """Return whether the stage says that it failed, by a status of 500 or more."""
        column = stage.status
        return column >= 0 and row[column] >= 500

    def ran(self, stage: StagePlan, row: Sequence[Any]) -> bool:
        """Return whether the stage ran in this request."""
        return bool(row[stage.start] != NEVER)

    def parent_that_ran(self, stage: StagePlan, row: Sequence[Any]) -> int:
        """Return the index of the nearest ancestor that ran, -1 for the request itself."""
        parent, steps = stage.parent, 0
        while parent >= 0 and not self.ran(self.stages[parent], row):
            # A declared circle of parents must not hang the exporter.
            parent, steps = self.stages[parent].parent, steps + 1
            if steps > len(self.stages):
                return -1
        return -1 if parent >= 0 and self.stages[parent] is stage else parent


def _whole_number(dtype: np.dtype[Any], column: str) -> int:
    """Return the column's place if it is there and holds signed integers, else -1."""
    names = dtype.names or ()
    return names.index(column) if column in names and dtype[column].kind == "i" else -1


def stage_span_id(root_span_id: int, stage: StagePlan) -> int:
    """Return the span id of a stage, as the service tells it to others."""
    return span_ids.stage_span_id(root_span_id, stage.salt)


def _attribute(key: str, dtype: np.dtype[Any], column: str, place: int) -> _Attribute:
    """Return how the column reads as an attribute, by its numpy type."""
    kind = dtype[column]
    if column in _ABSENT:
        return _Attribute(key, place, "int", _ABSENT[column])
    by_type = {"f": ("float", 0), "i": ("int", -(2**63)), "u1": ("bool", 255), "u4": ("str", 0)}
    name, absent = by_type.get(kind.kind) or by_type.get(f"{kind.kind}{kind.itemsize}") or ("int", 0)
    return _Attribute(key, place, name, absent)


def _present(
    attributes: Sequence[_Attribute], row: Sequence[Any], strings: Sequence[str]
) -> Iterator[tuple[str, Value]]:
    """Yield the attributes whose value is not the absent one."""
    for attribute in attributes:
        raw = row[attribute.place]
        if attribute.kind == "float":
            # NaN is the absent float, and the one value that differs from itself.
            if raw == raw:  # noqa: PLR0124
                yield attribute.key, raw
        elif raw != attribute.absent:
            if attribute.kind == "str":
                yield attribute.key, text_of(strings, raw, "")
            else:
                yield attribute.key, bool(raw) if attribute.kind == "bool" else raw
