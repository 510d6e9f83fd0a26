from __future__ import annotations

import mmap
from collections import Counter
from typing import Any

import pytest

from probes.layout import MAX_REVISIONS, MAX_STAGES, STRING_BYTES
from probes.plan import FIXED_INDEX, WIRE_INDEX, Plan, StageSpec
from probes.strings import StringTable


def make(capacity_bytes: int = 60_000, room: int = 1 << 30) -> tuple[Plan, Counter[str], list[dict[str, Any]]]:
    """Return a plan, what it counted and what it published; *room* entries fit its journal."""
    counted: Counter[str] = Counter()
    journal: list[dict[str, Any]] = []

    def publish(entry: dict[str, Any]) -> bool:
        if len(journal) >= room:
            return False
        journal.append(entry)
        return True

    def count(reason: str) -> None:
        counted[reason] += 1

    strings = StringTable(mmap.mmap(-1, 64 * STRING_BYTES), 0, count, 64)
    return Plan(capacity_bytes, strings, publish, count), counted, journal


def test_the_middleware_s_columns_are_where_it_writes() -> None:
    """Its places are constants: they must be those of the plan."""
    plan, _, _ = make()
    names = [column.name for column in plan.revisions[-1].columns]

    assert {name: names.index(name) for name in WIRE_INDEX} == WIRE_INDEX
    assert {name: names.index(name) for name in FIXED_INDEX} == FIXED_INDEX


def test_every_revision_is_published_before_it_is_used() -> None:
    """The journal holds all columns of the newest revision, each once, in order."""
    plan, _, journal = make()
    plan.stage("a", {"n": 1})
    slot = plan.stage("b", {})
    assert slot is not None
    plan.attribute(slot, "late", "x")
    published = [tuple(column) for entry in journal for column in entry["columns"]]

    assert published == [(column.name, column.kind) for column in plan.revisions[-1].columns]
    assert list(range(len(plan.revisions))) == [entry["revision"] for entry in journal]


def test_a_journal_that_is_full_refuses_new_columns_and_keeps_the_old() -> None:
    """Counted; what was there goes on."""
    plan, counted, _ = make(room=3)
    known = len(plan.revisions)
    slots = [plan.stage(f"s{number}", {}) for number in range(5)]

    assert known + sum(slot is not None for slot in slots) == len(plan.revisions) == 3
    assert counted["stage_refused"] == sum(slot is None for slot in slots) > 0


def test_revisions_and_stages_are_bounded() -> None:
    """One by one until the revisions are spent, together until the stage byte is."""
    plan, _, _ = make()
    for number in range(200):
        plan.stage(f"one-{number}", {})
    many, _, _ = make()
    many._declare_all([StageSpec(f"many-{number}") for number in range(MAX_STAGES - len(many.stages))])
    beyond = many.stage("beyond", {})

    assert MAX_REVISIONS == len(plan.revisions)
    assert (MAX_STAGES, None) == (len(many.stages), beyond)


def test_a_refusal_is_remembered_and_counted_once_per_name() -> None:
    """A refused stage in every request costs a look-up, not a lock and a compilation; memory of refusals is bounded."""
    plan, counted, _ = make(room=2)
    for _ in range(3):
        for number in range(300):
            plan.stage(f"s{number}", {})

    assert len(plan._refused) <= 256
    assert counted["stage_refused"] >= 300


def test_a_stage_and_an_attribute_cannot_share_a_column() -> None:
    """Names that would collide are refused."""
    plan, counted, _ = make()
    slot = plan.stage("s", {"n": 1})
    assert slot is not None

    assert not plan.attribute(slot, "start_ns", 1)
    assert {"attribute_refused": 1} == counted


@pytest.mark.parametrize("name", ["confidence", "label"])
def test_an_attribute_that_has_a_column_of_its_own_goes_there(name: str) -> None:
    """The request's known attributes are fixed columns."""
    plan, _, _ = make()

    assert FIXED_INDEX[name] == plan.request.places[name][0]
