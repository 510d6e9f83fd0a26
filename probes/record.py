"""One request's row while it is filled: stages, attributes, and the request that is current.

A stage that runs twice in one request keeps its first start and adds its durations up; if two threads run the same
stage of the same request at the same time, one of the two durations may be lost.

Cost      0.6 us for a stage, 1.1 us with four attributes in a hot loop, 0.8 and 1.4 inside an app; compiled a
          third (docs/overhead.md).
Error     none leaves this module: what goes wrong is counted under ``probe_failures`` of the status page.
Absent    without a current request a stage does nothing and `current` is None.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from time import perf_counter_ns, thread_time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from probes.core import CORE
from probes.plan import FIXED_INDEX, StageSlot
from probes.schema import NEVER, OUTCOMES
from probes.writer import RingWriter

__all__ = [
    "FLAG_LOW_QUALITY",
    "FLAG_SAMPLED",
    "FLAG_SESSION_GENERATED",
    "Record",
    "batch_stage",
    "bind",
    "current",
    "stage",
]

FLAG_SESSION_GENERATED: Final = 1
FLAG_SAMPLED: Final = 2
FLAG_LOW_QUALITY: Final = 4

I_BATCH: Final = FIXED_INDEX["batch_id"]
I_FLAGS: Final = FIXED_INDEX["flags"]
I_OUTCOME: Final = FIXED_INDEX["outcome"]

CURRENT: ContextVar[Record | None] = ContextVar("inferdeck_record", default=None)
_batch_ids = itertools.count(1)


class Record:
    """The row of one request in flight; safe to hand to other threads and tasks.

    Args:
        writer: Where the row will go.
        row: Values, one per column.
        started_ns: The request's start on `perf_counter_ns`.
        slot: The open slot's place.
    """

    __slots__ = ("buffer", "row", "slot", "stages", "started_ns", "writer")

    def __init__(self, writer: RingWriter, row: list[Any], started_ns: int, slot: int) -> None:
        self.writer = writer
        self.buffer = writer.buffer
        self.stages = writer.plan.stages
        self.row = row
        self.started_ns = started_ns
        self.slot = slot

    def stage(self, name: str, /, **attributes: Any) -> Stage:
        """Start a stage of this request, from any thread or task; see `stage`.

        Args:
            name: Name of the stage.
            **attributes: What explains it: int, float, bool or short str. Never texts of users.
        """
        return _enter(self, name, attributes)

    def set(self, **attributes: Any) -> None:
        """Set attributes of the request itself.

        Args:
            **attributes: input_length, tokens, confidence, label, model_version, reason, route, client_release,
                device_type, batch_id, outcome (ok, refused, error, degraded, disconnected), or others, which become
                columns ``request/<name>``.
        """
        try:
            self.write(self.writer.plan.request, attributes)
        except Exception:  # noqa: BLE001  telemetry never takes a request down
            self.writer.count("record_set")

    def degraded(self, reason: str) -> None:
        """Say that the answer is a degraded one.

        Args:
            reason: A word from a closed set, such as ``deadline``.
        """
        self.set(outcome="degraded", reason=reason)

    def refused(self, reason: str) -> None:
        """Say why the request is refused.

        Args:
            reason: A word from a closed set, such as ``schema``.
        """
        self.set(outcome="refused", reason=reason)

    def low_quality(self) -> None:
        """Mark the request's input as one of low quality."""
        self.row[I_FLAGS] |= FLAG_LOW_QUALITY

    def in_batch(self, number: int) -> None:
        """Say in which batch the request is, unless that is known.

        Args:
            number: Number of the batch.
        """
        self.row[I_BATCH] = self.row[I_BATCH] or number

    @property
    def trace_id(self) -> str:
        """The trace id as 32 hex digits."""
        return f"{self.row[1]:016x}{self.row[2]:016x}"

    @property
    def session(self) -> str:
        """The session id that the row carries: the client's, or the generated one."""
        session: bytes = self.row[FIXED_INDEX["session"]]
        return session.decode("ascii", "replace") or self.trace_id

    @property
    def outcome(self) -> str:
        """The outcome so far; ``ok`` until somebody says otherwise."""
        return OUTCOMES[self.row[I_OUTCOME]]

    def write(self, slot: StageSlot, attributes: Mapping[str, Any]) -> None:
        """Write attribute values to their columns, making columns that are missing.

        Args:
            slot: The stage, or the plan's ``request``.
            attributes: Names and values; None leaves a column as it is.
        """
        row = self.row
        places = slot.places
        try:
            for name, value in attributes.items():
                if value is not None:
                    index, codes = places[name]
                    row[index] = value if codes is None else codes[value]
        except Exception:  # noqa: BLE001  a new attribute, a row older than its column, or a value that cannot be converted
            self._write_carefully(slot, attributes)

    def _write_carefully(self, slot: StageSlot, attributes: Mapping[str, Any]) -> None:
        """Write one by one what could not be written together; what cannot be written at all is counted."""
        plan = self.writer.plan
        for name, value in attributes.items():
            if value is None or (name not in slot.places and not plan.attribute(slot, name, value)):
                continue
            index, codes = slot.places[name]
            if index >= len(self.row):
                plan.grow(self.row)
            try:
                self.row[index] = value if codes is None else codes[value]
            except Exception:  # noqa: BLE001  a value of any class may fail in any way when it is converted
                self.writer.count("attribute_value")


class Stage:
    """A stage of one record that runs from the call of `stage` or `Record.stage` to the end of its ``with`` block."""

    __slots__ = ("_cpu_ns", "_record", "_slot", "_start_ns")

    # Without an __init__, which would be one more call for every stage of every request.
    _cpu_ns: int
    _record: Record | None
    _slot: StageSlot
    _start_ns: int

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        record = self._record
        if record is None:
            return
        slot = self._slot
        row = record.row
        row[slot.duration] += perf_counter_ns() - self._start_ns
        if slot.cpu is not None:
            row[slot.cpu] += thread_time_ns() - self._cpu_ns

    def set(self, **attributes: Any) -> None:
        """Set attributes of this stage while it runs.

        Args:
            **attributes: What explains it: int, float, bool or short str. Never texts of users.
        """
        if self._record is not None:
            try:
                self._record.write(self._slot, attributes)
            except Exception:  # noqa: BLE001  telemetry never takes a request down
                self._record.writer.count("stage_set")


NO_STAGE: Final = Stage()  # one for all: it keeps nothing
NO_STAGE._record = None


def _enter(record: Record, name: str, attributes: dict[str, Any], again: bool = False) -> Stage:
    """Start a stage of a record; all in one function, since it runs more often than any other."""
    try:
        slot = record.stages[name]
        row = record.row
        if attributes:
            # The same loop as in Record.write: a call less for every stage of every request.
            places = slot.places
            for key, value in attributes.items():
                if value is not None:
                    index, codes = places[key]
                    row[index] = value if codes is None else codes[value]
        record.buffer[record.slot + 1] = slot.number
        running = Stage()
        running._record = record
        running._slot = slot
        if slot.cpu is not None:
            running._cpu_ns = thread_time_ns()
        running._start_ns = start = perf_counter_ns()
        if row[slot.start] is NEVER:  # the template's own object, so that no number need be compared
            row[slot.start] = start - record.started_ns
        return running
    except Exception:  # a new stage or attribute, an older row, or a value that cannot be converted
        if again:
            raise
        return _enter_carefully(record, name, attributes)


def _enter_carefully(record: Record, name: str, attributes: dict[str, Any]) -> Stage:
    """Start a stage whose columns may be missing; none if they cannot be had."""
    try:
        plan = record.writer.plan
        slot = plan.stage(name, attributes)
        if slot is None:
            return NO_STAGE
        plan.grow(record.row)
        record.write(slot, attributes)
        return _enter(record, name, {}, again=True)
    except Exception:  # noqa: BLE001  telemetry never takes a request down
        record.writer.count("stage")
        return NO_STAGE


def stage(name: str, /, **attributes: Any) -> Stage:
    """Start measuring a part of the current request; it ends with the ``with`` block around it.

    Args:
        name: Name of the stage.
        **attributes: What explains it: int, float, bool or short str. Never texts of users.

    Returns:
        What ``with stage("sentiment.tokenizer", tokens=12) as running:`` needs; its time runs from this call.
    """
    record = CURRENT.get()
    return NO_STAGE if record is None else _enter(record, name, attributes)


if not TYPE_CHECKING and CORE is not None:
    CORE.prepare(CURRENT=CURRENT)
    Record, Stage, stage = CORE.Record, CORE.Stage, CORE.stage


class batch_stage:  # noqa: N801  as above
    """One stage that many requests share, such as a model call on a batch; every record gets its times and attributes.

    Args:
        records: The requests of the batch.
        name: Name of the stage.
        batch_id: Number of the batch; by default a number of its own unless the records have one already.
        **attributes: What explains it, the same for all.
    """

    __slots__ = ("_attributes", "_batch_id", "_name", "_records", "_stages")

    def __init__(
        self, records: Iterable[Record | None], name: str, batch_id: int | None = None, **attributes: Any
    ) -> None:
        self._records = [record for record in records if record is not None]
        self._batch_id = next(_batch_ids) if batch_id is None else batch_id
        self._name = name
        self._attributes = attributes
        self._stages: list[Stage] = []

    def __enter__(self) -> batch_stage:
        for record in self._records:
            record.in_batch(self._batch_id)
        self._stages = [record.stage(self._name, **self._attributes) for record in self._records]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._stages:
            member.__exit__(kind, error, trace)

    def set(self, **attributes: Any) -> None:
        """Set attributes of the stage on every record.

        Args:
            **attributes: What explains it, the same for all.
        """
        for member in self._stages:
            member.set(**attributes)


class bind:  # noqa: N801  as above
    """Make a record the current one in another thread or task: ``with bind(record): ...``.

    Args:
        record: The record, or None for no request.
    """

    __slots__ = ("_record", "_token")

    def __init__(self, record: Record | None) -> None:
        self._record = record

    def __enter__(self) -> Record | None:
        self._token: Token[Record | None] = CURRENT.set(self._record)
        return self._record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        CURRENT.reset(self._token)


def current() -> Record | None:
    """Return the record of the request that runs here, or None outside of one."""
    return CURRENT.get()
