"""Batches that are padded for one text are told from long ones, from cheap ones, and from those without a culprit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.rows import Rows
from runbooks.steps import padding

T0 = 1_780_000_000.0
SHORT, LONG = 20, 500
# Seconds of a call by its slots, as the transformer takes on one busy core.
PER_SLOT = 2e-5


def rows_of(before: Sequence[Sequence[int]], during: Sequence[Sequence[int]], per_slot: float = PER_SLOT) -> Rows:
    """Return requests by the tokens of each batch: a minute of one kind, then a minute of another."""
    told: list[tuple[float, ...]] = []
    for start, batches in ((T0 - 60.0, before), (T0, during)):
        for number, batch in enumerate(batches):
            at, most = start + 60.0 * (number + 0.5) / len(batches), max(batch)
            told += [(at, one, most, per_slot * most * len(batch), int(start) + number) for one in batch]
    start_s, used, width, seconds, batch_ids = (
        np.array(column, dtype=np.float64) for column in zip(*told, strict=True)
    )
    count = len(told)
    return Rows(
        start_s=start_s,
        duration_s=seconds + 0.002,
        outcome=np.zeros(count, dtype=np.int64),
        bucket=np.full(count, "short", dtype=object),
        session=np.arange(count, dtype=np.uint64),
        trace_id=np.array([f"{index:032x}" for index in range(count)], dtype=object),
        ring=np.full(count, "ring0", dtype=object),
        stages={padding.MODEL: (np.full(count, 0.001), seconds)},
        parents={padding.MODEL: ""},
        numbers={
            "batch_id": batch_ids,
            "sentiment.tokenizer/seq_len": width,
            "sentiment.tokenizer/padding_ratio": 1.0 - used / width,
        },
    )


def evidence_of(rows: Rows | None, series: dict[str, tuple[Series, ...]] | None = None) -> Evidence:
    """Return the evidence of an incident from T0 on."""
    return Evidence(Window(T0 - 60.0, T0 + 60.0, T0, T0 + 60.0), series, rows)


HEALTHY = [[SHORT, SHORT + 5]] * 60
PADDED = [[LONG, *[SHORT] * 7]] * 40
UNIFORM = [[LONG, LONG - 10, LONG - 3, LONG - 20]] * 40


def test_one_long_text_among_short_ones_is_told_with_its_request() -> None:
    """Share, cost, who pays and for whom."""
    evidence = evidence_of(rows_of(HEALTHY, PADDED))

    assert 0.84 == pytest.approx(padding.share(evidence).value, abs=0.01)
    assert 0.067 == pytest.approx(padding.wasted_seconds(evidence).value, abs=0.001)
    assert 1 / 8 == pytest.approx(padding.long_share(evidence).value)
    others = padding.others_model_time(evidence).value
    assert isinstance(others, float)
    assert others > 50
    culprit = padding.culprit(evidence)
    # 120 healthy requests, then each batch begins with its long text.
    assert f"{120:032x} ({LONG} tokens)" == culprit.value
    assert "40 such requests in 40 batches" in culprit.detail


def test_batches_that_are_long_through_and_through_pad_nobody() -> None:
    """The twin: as much work, no culprit."""
    evidence = evidence_of(rows_of(HEALTHY, UNIFORM))

    share = padding.share(evidence).value
    assert isinstance(share, float)
    assert share < 0.05
    assert 1.0 == padding.long_share(evidence).value
    assert padding.others_model_time(evidence).value is None
    assert padding.culprit(evidence).value is None


def test_padding_that_costs_nothing_is_measured_as_nothing() -> None:
    """The linear model: microseconds."""
    wasted = padding.wasted_seconds(evidence_of(rows_of(HEALTHY, PADDED, per_slot=3e-8))).value

    assert isinstance(wasted, float)
    assert wasted < 0.001


def test_a_slower_model_is_not_the_others_time() -> None:
    """Without padding there is nobody who pays for another."""
    assert padding.others_model_time(evidence_of(rows_of(HEALTHY, HEALTHY))).value is None


@pytest.mark.parametrize("during", [[[LONG, SHORT]], []], ids=["a handful", "none"])
def test_too_few_requests_are_no_share(during: list[list[int]]) -> None:
    """Unseen, not 0."""
    evidence = evidence_of(rows_of(HEALTHY, during))

    for step in (padding.share, padding.wasted_seconds, padding.long_share, padding.others_model_time, padding.culprit):
        assert step(evidence).value is None


def test_rows_of_a_service_without_these_stages_are_unseen() -> None:
    """Somebody else's service has no tokenizer of ours."""
    rows = replace(rows_of(HEALTHY, PADDED), numbers={})

    assert padding.share(evidence_of(rows)).value is None


@pytest.mark.parametrize(("grown", "share"), [((80.0, 20.0), 0.8), ((0.0, 0.0), None)])
def test_without_rows_the_counters_tell_the_share(
    growing: Any, grown: tuple[float, float], share: float | None
) -> None:
    """And only that."""
    series = tuple(growing({"use": use}, 10.0, rate) for use, rate in zip(("padding", "text"), grown, strict=True))
    evidence = Evidence(Window(T0 - 120.0, T0 + 60.0, T0, T0 + 60.0), {signals.SLOTS: series}, None)

    found = padding.share(evidence)

    assert "prometheus" == found.source
    assert share == (found.value if share is None else pytest.approx(found.value, abs=0.02))
    assert padding.culprit(evidence).value is None
