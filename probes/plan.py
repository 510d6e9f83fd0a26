"""Which columns the rows of one file have, and where a stage or an attribute writes its values.

Cost      a stage or attribute seen before is one or two dict look-ups; a new one takes a lock and compiles a revision.
Bounded   255 stages, 64 revisions, the row's capacity, 256 remembered refusals; the rest is refused and counted.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from probes.layout import MAX_REVISIONS, MAX_STAGES
from probes.schema import FIXED_COLUMNS, OUTCOMES, Column, Revision, compile_revision, kind_of
from probes.strings import Field, StringTable

__all__ = ["FIXED_INDEX", "WIRE_INDEX", "WIRE_STAGES", "Plan", "StageSlot", "StageSpec", "check_name", "define_stage"]

FIXED_INDEX: Final = {column.name: index for index, column in enumerate(FIXED_COLUMNS)}
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
Codes = dict[Any, int]
ATTRIBUTE_KINDS: Final[dict[type, str]] = {bool: "bool", int: "int", float: "float", str: "str"}
# What the app may say about the request itself in columns that every row has.
REQUEST_NUMBERS: Final = ("input_length", "tokens", "confidence", "batch_id")
REQUEST_TEXTS: Final = ("route", "client_release", "device_type", "model_version", "label", "reason", "error_type")


@dataclass(frozen=True, slots=True)
class StageSpec:
    """What `define_stage` was told.

    Attributes:
        name: Name of the stage; it becomes the span's name.
        parent: Name of the stage it lies in, or None for the request itself.
        cpu: Whether to measure the CPU time of the thread that runs it.
        attributes: Attribute name -> kind (int, float, bool, str).
    """

    name: str
    parent: str | None = None
    cpu: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class StageSlot:
    """Where one stage writes: indexes into a row's list of values, and the codes that stand for texts and truths."""

    name: str
    number: int
    start: int
    duration: int
    cpu: int | None
    places: dict[str, tuple[int, Codes | None]] = field(default_factory=dict)


# What the middleware measures for every app. These stages come first in every file, so their places are constants.
WIRE_STAGES: Final = (
    StageSpec("network.receive", attributes={"bytes": "int"}),
    StageSpec("network.send", attributes={"bytes": "int", "first_body_ns": "int"}),
)

WIRE_INDEX: Final = {
    column: len(FIXED_COLUMNS) + place
    for place, column in enumerate(
        f"{spec.name}/{name}" for spec in WIRE_STAGES for name in ("start_ns", "duration_ns", *spec.attributes)
    )
}

# Declarations are facts about the program's code, like its functions: they belong to the process, not to one recorder.
_declared: dict[str, StageSpec] = {}


def check_name(name: object) -> str:
    """Return *name* if it can be the name of a stage or attribute.

    Args:
        name: Letters, digits and ``_ . : -``, 1 to 64 of them.

    Raises:
        ValueError: If it cannot.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            f"a stage or attribute name is 1 to 64 letters, digits or any of _.:- ; not {str(name)[:80]!r}"
        )
    return name


def define_stage(name: str, parent: str | None = None, cpu: bool = False, **attribute_types: type) -> StageSpec:
    """Declare a stage and the types of its attributes ahead of its first use.

    Declared stages share one schema revision, have their parent, and cost no lock when they first run.

    Args:
        name: Name of the stage, such as ``sentiment.tokenizer``.
        parent: Name of the stage it lies in; None for the request itself.
        cpu: Measure the thread's CPU time as well (about 0.5 us more); for stages without ``await`` inside only, or
            other requests' work on the same thread is counted.
        **attribute_types: Attribute name -> int, float, bool or str.

    Raises:
        ValueError: If a name or type is not possible, or the stage was declared before in another way.
    """
    for attribute, kind in attribute_types.items():
        if kind not in ATTRIBUTE_KINDS:
            raise ValueError(f"attribute {attribute} of {name} must be int, float, bool or str, not {kind!r}")
    kinds = {check_name(attribute): ATTRIBUTE_KINDS[kind] for attribute, kind in attribute_types.items()}
    spec = StageSpec(check_name(name), None if parent is None else check_name(parent), cpu, kinds)
    if _declared.setdefault(name, spec) != spec:
        raise ValueError(f"stage {name} was declared before with another parent, cpu or attributes")
    return spec


class _Truths(dict[Any, int]):
    """1 or 0 for whatever is true or false; a look-up costs half of a call."""

    def __missing__(self, value: object) -> int:
        return 1 if value else 0


TRUTHS: Final = _Truths({True: 1, False: 0})
OUTCOME_CODES: Final = {name: code for code, name in enumerate(OUTCOMES)}


class Plan:
    """The growing list of columns of one file.

    Args:
        capacity_bytes: Most bytes that a row's body may have.
        strings: The file's string table.
        publish: Stores a journal entry in the file; returns False when the journal is full.
        count: Called with a reason when something is refused.
        stages: Stages to compile into the first revision.
    """

    def __init__(
        self,
        capacity_bytes: int,
        strings: StringTable,
        publish: Callable[[dict[str, Any]], bool],
        count: Callable[[str], None],
        stages: Iterable[StageSpec] = (),
    ) -> None:
        self._capacity_bytes = capacity_bytes
        self._strings = strings
        self._publish = publish
        self._count = count
        self._lock = threading.RLock()
        self._refused: set[str] = set()
        self._names: set[str] = set()
        self.revisions: list[Revision] = []
        # Row length -> how to pack it. Each revision is longer than the one before, so the length names the revision.
        self.packers: dict[int, tuple[int, int, Callable[..., bytes]]] = {}
        self.template: list[Any] = []
        self.stages: dict[str, StageSlot] = {}
        self.request = StageSlot("request", 0, 0, 0, None)
        for name in REQUEST_NUMBERS:
            self.request.places[name] = (FIXED_INDEX[name], None)
        for name in REQUEST_TEXTS:
            self.request.places[name] = (FIXED_INDEX[name], Field(strings))
        self.request.places["outcome"] = (FIXED_INDEX["outcome"], OUTCOME_CODES)
        if not self._append(list(FIXED_COLUMNS), []):
            raise ValueError(f"the fixed columns do not fit a row of {capacity_bytes} bytes")
        self._declare_all(WIRE_STAGES)
        self._declare_all([*_declared.values(), *stages])

    def text_field(self, name: str) -> Field:
        """Return the texts of a fixed text column, for a writer that looks ids up itself.

        Args:
            name: Name of a fixed column of kind str.
        """
        known = self.request.places.get(name)
        texts = known[1] if known else None
        return texts if isinstance(texts, Field) else Field(self._strings)

    def grow(self, row: list[Any]) -> None:
        """Extend a row that was begun under an older revision to the newest one.

        Args:
            row: The row's values; extended in place.
        """
        with self._lock:  # two threads may grow the same row at once
            row.extend(self.template[len(row) :])

    def stage(self, name: str, attributes: Mapping[str, Any]) -> StageSlot | None:
        """Return the slot of a stage, making its columns at first use; None if it is refused.

        Args:
            name: Name of the stage.
            attributes: Values of its attributes, from which their kinds are taken.
        """
        slot = self.stages.get(name)
        if slot is not None or name in self._refused:
            return slot
        with self._lock:
            spec = _declared.get(name)
            if spec is None:
                kinds = {
                    key: kind for key, value in attributes.items() if (kind := kind_of(value)) and NAME.fullmatch(key)
                }
                spec = StageSpec(name, attributes=kinds)
            self._declare_all([spec])
            return self.stages.get(name)

    def attribute(self, slot: StageSlot, name: str, value: object) -> bool:
        """Make the column of an attribute that a stage, or the request, did not have yet.

        Args:
            slot: The stage, or ``request``.
            name: Name of the attribute.
            value: Its first value, from which its kind is taken.

        Returns:
            Whether the attribute has a column now.
        """
        key = f"{slot.name}/{name}"
        kind = kind_of(value)
        if kind is None or key in self._refused:
            self._count("attribute_refused")
            return False
        with self._lock:
            if name in slot.places:
                return True
            base = len(self.template)
            if not NAME.fullmatch(name) or not self._append([Column(key, kind)], []):
                self._refuse(key, "attribute_refused")
                return False
            self._place(slot, name, kind, base)
            return True

    def _declare_all(self, specs: Iterable[StageSpec]) -> None:
        """Compile these stages into one revision if they fit together, else one by one as far as they fit."""
        wanted = {spec.name: spec for spec in specs if spec.name not in self.stages}
        with self._lock:
            # Together first: revisions are scarce (64), and stages declared at start need only one.
            if not wanted or self._declare(list(wanted.values())):
                return
            for spec in wanted.values():
                if len(wanted) == 1 or not self._declare([spec]):
                    self._refuse(spec.name, "stage_refused")

    def _declare(self, specs: list[StageSpec]) -> bool:
        if len(self.stages) + len(specs) > MAX_STAGES or not all(NAME.fullmatch(spec.name) for spec in specs):
            return False
        columns: list[Column] = []
        slots: list[tuple[StageSlot, list[tuple[str, str, int]]]] = []
        for spec in specs:
            base = len(self.template) + len(columns)
            columns += [Column(f"{spec.name}/start_ns", "start"), Column(f"{spec.name}/duration_ns", "u64")]
            if spec.cpu:
                columns.append(Column(f"{spec.name}/cpu_ns", "u64"))
            slot = StageSlot(
                spec.name, len(self.stages) + len(slots) + 1, base, base + 1, base + 2 if spec.cpu else None
            )
            places = []
            for name, kind in spec.attributes.items():
                places.append((name, kind, len(self.template) + len(columns)))
                columns.append(Column(f"{spec.name}/{name}", kind))
            slots.append((slot, places))
        if not self._append(columns, [[spec.name, spec.parent or "", spec.cpu] for spec in specs]):
            return False
        for slot, places in slots:
            for name, kind, index in places:
                self._place(slot, name, kind, index)
            self.stages[slot.name] = slot
        return True

    def _place(self, slot: StageSlot, name: str, kind: str, index: int) -> None:
        codes: Codes | None = None
        if kind == "str":
            codes = Field(self._strings)
        elif kind == "bool":
            codes = TRUTHS
        slot.places[name] = (index, codes)

    def _append(self, columns: list[Column], stages: list[list[Any]]) -> bool:
        names = [column.name for column in columns]
        if len(self.revisions) >= MAX_REVISIONS or len(set(names)) < len(names) or not self._names.isdisjoint(names):
            return False
        before = self.revisions[-1].columns if self.revisions else ()
        revision = compile_revision((*before, *columns))
        if revision.packer.size > self._capacity_bytes:
            return False
        entry = {
            "revision": len(self.revisions),
            "columns": [[column.name, column.kind] for column in columns],
            "stages": stages,
        }
        # Published before use: a reader must be able to read any row that it finds.
        if not self._publish(entry):
            return False
        self._names.update(names)
        self.packers[len(revision.columns)] = (len(self.revisions), revision.packer.size, revision.packer.pack)
        self.revisions.append(revision)
        # Last: rows are copied from it, and their length must be known to the packers by then.
        self.template = list(revision.template)  # a new list: rows copy it without a lock
        return True

    def _refuse(self, name: str, reason: str) -> None:
        self._count(reason)
        if len(self._refused) < 256:
            self._refused.add(name)
