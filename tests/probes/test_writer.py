from __future__ import annotations

import gc
import math
import struct
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.plan import FIXED_INDEX, StageSpec
from probes.reader import RingFile
from probes.ringfile import OwnedRing, open_ring
from probes.schema import KINDS
from probes.settings import Identity, RecorderSettings
from probes.writer import coerce


def make(folder: Path, **sizes: int) -> tuple[OwnedRing, Counter[str]]:
    """Return a ring and what its writer counts."""
    counted: Counter[str] = Counter()
    settings = RecorderSettings(**{"ring_rows": 64, "open_slots": 4, **sizes})  # type: ignore[arg-type]
    return open_ring(folder, "test", Identity(), settings, lambda reason: counted.update([reason])), counted


ANYTHING = (
    st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=40) | st.lists(st.integers())
)


@given(ANYTHING, st.sampled_from(sorted(KINDS)))
def test_any_value_becomes_one_that_its_column_can_hold(value: Any, kind: str) -> None:
    """What does not fit is absent, and said to be lost."""
    held, whole = coerce(value, kind)
    packed = struct.unpack("<" + KINDS[kind].code, struct.pack("<" + KINDS[kind].code, held))[0]

    if not whole:
        absent = KINDS[kind].absent
        assert held == absent or (isinstance(held, float) and math.isnan(held))
    elif isinstance(value, int | float) and not (isinstance(value, float) and math.isnan(value)):
        assert packed == value


@pytest.mark.parametrize(
    "value", ["text", 1.5, 2**70, -(2**70), float("nan"), float("inf"), [1], object(), b"x", 10**400]
)
def test_a_wrong_value_costs_its_column_and_never_the_row(tmp_path: Path, value: object) -> None:
    """The row is written, the value is absent, the loss is counted."""
    ring, counted = make(tmp_path / "r")
    row = ring.writer.plan.template.copy()
    row[FIXED_INDEX["tokens"]] = value
    row[FIXED_INDEX["input_length"]] = 12
    ring.writer.commit(row, ring.writer.scratch)
    with RingFile(ring.path or "") as reader:
        read = reader.read().rows
    ring.close()

    assert (1, 12, -1) == (len(read), read[0]["input_length"], read[0]["tokens"])
    assert {"attribute_value": 1} == counted


def test_a_whole_float_is_a_number_of_things(tmp_path: Path) -> None:
    """12.0 tokens are 12 tokens."""
    ring, counted = make(tmp_path / "r")
    row = ring.writer.plan.template.copy()
    row[FIXED_INDEX["tokens"]] = 12.0
    ring.writer.commit(row, ring.writer.scratch)
    with RingFile(ring.path or "") as reader:
        read = reader.read().rows
    ring.close()

    assert (12, {}) == (read[0]["tokens"], counted)


def test_rows_of_many_threads_have_no_gap(tmp_path: Path) -> None:
    """Sequence numbers are given at commit, one after the other, and every row is whole."""
    ring, _ = make(tmp_path / "r", ring_rows=4096)

    def work(number: int) -> None:
        for value in range(500):
            row = ring.writer.plan.template.copy()
            row[FIXED_INDEX["tokens"]], row[FIXED_INDEX["input_length"]] = number, value
            ring.writer.commit(row, ring.writer.scratch)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with RingFile(ring.path or "") as reader:
        rows = reader.read(0, 4096).rows
    ring.close()

    assert list(range(2000)) == rows["seq"].tolist()
    assert Counter(rows["tokens"].tolist()) == dict.fromkeys(range(4), 500)


def test_threads_that_bring_new_stages_at_once_lose_none(tmp_path: Path) -> None:
    """The schema grows under a lock; each row keeps its values."""
    ring, counted = make(tmp_path / "r", row_bytes=4096)
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        for value in range(5):
            row = ring.writer.plan.template.copy()
            slot = ring.writer.plan.stage(f"stage-{number}-{value}", {"value": value})
            assert slot is not None
            ring.writer.plan.grow(row)
            row[slot.places["value"][0]] = value
            ring.writer.commit(row, ring.writer.scratch)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with RingFile(ring.path or "") as reader:
        rows = reader.read().rows
    ring.close()
    stored = [sum(row[f"stage-{n}-{v}/value"] == v for row in rows) for n in range(4) for v in range(5)]

    assert ([1] * 20, {}) == (stored, counted)


def test_columns_beyond_the_capacity_are_refused_and_counted(tmp_path: Path) -> None:
    """A stage named after an id fills the row's capacity, not the memory; requests go on."""
    ring, counted = make(tmp_path / "r", row_bytes=512)
    slots = [ring.writer.plan.stage(f"user-{number}", {}) for number in range(600)]
    row = ring.writer.plan.template.copy()
    ring.writer.commit(row, ring.writer.scratch)
    with RingFile(ring.path or "") as reader:
        read = reader.read().rows
    ring.close()

    assert slots[0] is not None
    assert slots[-1] is None
    assert len(read) == 1
    assert counted["stage_refused"] >= 500
    assert read.dtype.itemsize <= 512 - 16


def test_stages_that_do_not_fit_together_are_taken_as_far_as_they_fit(tmp_path: Path) -> None:
    """A declaration too many costs the last stages, not all."""
    ring, counted = make(tmp_path / "r", row_bytes=512)
    ring.writer.plan._declare_all([StageSpec(f"s{number}") for number in range(40)])
    ring.close()

    assert 5 < sum(name.startswith("s") for name in ring.writer.plan.stages) < 40
    assert counted["stage_refused"] > 0


def test_200_000_rows_cost_no_memory(tmp_path: Path) -> None:
    """What a row needs is given back when it is written."""
    ring, _ = make(tmp_path / "r", ring_rows=1024)
    process = psutil.Process()

    def write(count: int) -> int:
        plan, writer = ring.writer.plan, ring.writer
        ids = (1, 2, 3, 0, 5, 6, b"session", 1, 0, 0, 0)
        for _ in range(count):
            writer.commit(plan.template.copy(), writer.begin(ids))
        gc.collect()
        return process.memory_info().rss

    before = write(20_000)
    after = write(180_000)
    ring.close()

    assert after - before < 2 << 20


@pytest.mark.parametrize(("place", "value"), [(0, 2**64), (2, -1), (3, "id"), (6, 7)])
def test_ids_that_do_not_fit_take_no_slot(tmp_path: Path, place: int, value: object) -> None:
    """A foreign tracer's id may be too wide: the request goes unrecorded, its slot serves the next one."""
    ring, _ = make(tmp_path / "r", open_slots=2)
    good: list[Any] = [1, 2, 3, 4, 5, 6, b"s" * 16, 0, 0, 0, 0]
    wrong = list(good)
    wrong[place] = value
    for _ in range(3):
        with pytest.raises(struct.error):
            ring.writer.begin(tuple(wrong))
    with RingFile(ring.path or "") as reader:
        empty = len(reader.open_slots())
        ring.writer.begin(tuple(good))
        ring.writer.begin(tuple(good))
        taken = len(reader.open_slots())

    assert (0, 2, 0) == (empty, taken, ring.writer.open_overflow)
