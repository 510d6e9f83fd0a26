"""A server that died of the card is told from one that ended in another way, with code and batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, Window
from runbooks.pages import load_pages
from runbooks.rows import Rows
from runbooks.scoring import score_page
from runbooks.steps import triton_exit
from runbooks.steps.registry import STEPS
from runbooks.triton_queries import EXITS, LAST_EXIT

T0 = 1_780_000_000.0
TIMES = np.arange(T0 - 120.0, T0 + 60.1, 5.0)


def ended(how: str, code: str = "-6") -> dict[str, tuple[Series, ...]]:
    """Return a Triton that ended once, ten seconds after T0."""
    since = (TIMES >= T0 + 10.0).astype(float)
    counts = [
        Series({"how": kind}, TIMES, since * (kind == how)) for kind in ("illegal_memory_access", "signal", "clean")
    ]
    last = Series({"how": how, "code": code}, TIMES[since > 0], np.ones(int(since.sum())))
    return {EXITS: tuple(counts), LAST_EXIT: () if how == "clean" else (last,)}


def rows_of(*calls: tuple[str, int, int], seconds: float = 0.1) -> Rows:
    """Return requests by error, texts and tokens of their call, which took so long."""
    count = len(calls)
    error, batch, width = zip(*calls, strict=True)
    return Rows(
        start_s=np.linspace(T0, T0 + 12.0, count),
        duration_s=np.full(count, 0.01),
        outcome=np.zeros(count, dtype=np.int64),
        bucket=np.full(count, "short", dtype=object),
        session=np.arange(count, dtype=np.uint64),
        trace_id=np.array([f"{index:032x}" for index in range(count)], dtype=object),
        ring=np.full(count, "ring0", dtype=object),
        stages={triton_exit.CLIENT: (np.zeros(count), np.full(count, seconds))},
        parents={triton_exit.CLIENT: ""},
        labels={triton_exit.ERROR: np.array(error, dtype=object)},
        numbers={
            triton_exit.BATCH: np.array(batch, dtype=np.float64),
            triton_exit.WIDTH: np.array(width, dtype=np.float64),
        },
    )


def evidence_of(series: dict[str, Any] | None, rows: Rows | None = None) -> Evidence:
    """Return the evidence of an incident from T0 on."""
    return Evidence(Window(T0 - 120.0, T0 + 60.0, T0, T0 + 60.0), series, rows)


def nameable(evidence: Evidence) -> bool:
    """Return whether the page may be the verdict."""
    page = next(one for one in load_pages().values() if one.alert == "IllegalMemoryAccess")
    return score_page(page, {name: STEPS[name](evidence) for name in {step.run for step in page.steps}}).nameable


def test_code_and_batch_are_told() -> None:
    """The largest call on the way, and nothing of those that were answered."""
    evidence = evidence_of(
        ended("illegal_memory_access"), rows_of(("", 32, 512), ("broken", 1, 512), ("broken", 8, 512))
    )

    assert "-6 (illegal_memory_access)" == triton_exit.code(evidence).value
    assert "[8, 512]" == triton_exit.batch_at_end(evidence).value
    assert triton_exit.batch_at_end(evidence_of({}, rows_of(("", 32, 512)))).value is None
    # A kept connection that breaks is opened anew, and then nobody listens; who came later is refused at once.
    assert "[8, 512]" == triton_exit.batch_at_end(evidence_of({}, rows_of(("refused", 8, 512)))).value
    assert triton_exit.batch_at_end(evidence_of({}, rows_of(("refused", 8, 512), seconds=0.001))).value is None


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (ended("illegal_memory_access"), True),
        (ended("signal", "-9"), False),
        (ended("clean"), False),
        ({}, False),
        (None, False),
    ],
)
def test_only_its_own_words_name_it(series: dict[str, Any] | None, expected: bool) -> None:
    """An end by another signal, a clean one, and no Triton at all are none."""
    assert expected == nameable(evidence_of(series))


def test_without_a_triton_nothing_is_seen() -> None:
    """Not even that all is well."""
    for name in triton_exit.__all__:
        assert getattr(triton_exit, name)(evidence_of(None)).value is None
