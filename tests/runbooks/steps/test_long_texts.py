"""Short texts behind long ones are told from those that wait for everybody, and from long ones that wait elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Window
from runbooks.pages import load_pages
from runbooks.rows import Rows
from runbooks.scoring import score_page
from runbooks.steps import long_texts
from runbooks.steps.registry import STEPS

T0 = 1_780_000_000.0
MS = 1_000_000.0


def rows_of(*kinds: tuple[float, str, int, float, str, float]) -> Rows:
    """Return requests of (first second, length class, how many in a minute, wait in ms, queue, ms in the model)."""
    told: list[tuple[Any, ...]] = []
    for start, bucket, count, wait, queue, work in kinds:
        told += [(T0 + start + 60.0 * (at + 0.5) / count, bucket, wait * MS, queue, work / 1e3) for at in range(count)]
    count = len(told)
    start_s, buckets, waits, queues, works = zip(*told, strict=True)
    return Rows(
        start_s=np.array(start_s),
        duration_s=np.array(works) + 0.001,
        outcome=np.zeros(count, dtype=np.int64),
        bucket=np.array(buckets, dtype=object),
        session=np.arange(count, dtype=np.uint64),
        trace_id=np.array([f"{index:032x}" for index in range(count)], dtype=object),
        ring=np.full(count, "ring0", dtype=object),
        labels={long_texts.QUEUE: np.array(queues, dtype=object)},
        stages={long_texts.MODEL: (np.full(count, 0.001), np.array(works))},
        parents={long_texts.MODEL: ""},
        numbers={long_texts.WAIT: np.array(waits)},
    )


def evidence_of(rows: Rows | None) -> Evidence:
    """Return the evidence of an incident from T0 on."""
    return Evidence(Window(T0 - 60.0, T0 + 60.0, T0, T0 + 60.0), None, rows)


HEALTHY = (-60.0, "short", 100, 0.5, "normal", 2.0)
BEHIND = (0.0, "short", 100, 180.0, "normal", 2.0)
LONG = (0.0, "long", 200, 200.0, "normal", 50.0)


def nameable(rows: Rows | None) -> bool:
    """Return whether the page may be the verdict."""
    evidence = evidence_of(rows)
    page = next(one for one in load_pages().values() if one.alert == "LongTextBurst")
    return score_page(page, {name: STEPS[name](evidence) for name in STEPS if name.startswith("long_texts.")}).nameable


def test_short_texts_behind_long_ones_are_measured() -> None:
    """Their wait, now and against before, where the long ones stood, and what these took."""
    evidence = evidence_of(rows_of(HEALTHY, BEHIND, LONG))

    assert 0.18 == pytest.approx(long_texts.short_wait_seconds(evidence).value)
    assert 180.0 == pytest.approx(long_texts.short_wait_ratio(evidence).value)
    assert 1.0 == long_texts.same_queue_share(evidence).value
    assert 10.0 / 10.2 == pytest.approx(long_texts.work_share(evidence).value)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (rows_of(HEALTHY, BEHIND, LONG), True),
        # a queue of their own, whatever lets the short ones wait
        (rows_of(HEALTHY, BEHIND, (0.0, "long", 200, 400.0, "long", 50.0)), False),
        (rows_of(HEALTHY, (0.0, "short", 100, 20.0, "normal", 2.0), (0.0, "long", 200, 400.0, "long", 50.0)), False),
        # more requests than can be answered, of which few are long
        (rows_of(HEALTHY, (0.0, "short", 4000, 180.0, "normal", 2.0), (0.0, "long", 20, 180.0, "normal", 50.0)), False),
        # long ones that hold nobody up
        (rows_of(HEALTHY, (0.0, "short", 100, 3.0, "normal", 2.0), (0.0, "long", 20, 3.0, "normal", 50.0)), False),
        (rows_of(HEALTHY, (0.0, "short", 100, 0.5, "normal", 2.0)), False),
        (None, False),
    ],
)
def test_only_short_texts_behind_long_ones_are_named(rows: Rows | None, expected: bool) -> None:
    """Neither a full machine, nor long texts alone, nor nothing at all."""
    assert expected == nameable(rows)


def test_without_rows_nothing_is_seen() -> None:
    """Not even that all is well."""
    for name in long_texts.__all__:
        assert getattr(long_texts, name)(evidence_of(None)).value is None
