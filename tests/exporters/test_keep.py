from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.keep import KeepBudget, KeepRules, keep_reasons
from exporters.labels import KEPT_REASONS
from probes.schema import FIXED_COLUMNS, KINDS

DTYPE = np.dtype([(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS])
TOLD = np.dtype([*DTYPE.descr, ("request/canary_difference", "u1"), ("request/confidence_weight", "f8")])
NEVER_RANDOM = {"trace_lo": 2**64 - 1, "seq": 1000, "input_length": 50, "confidence": 0.9}


def rows_of(**values: Any) -> np.ndarray[Any, Any]:
    """One row that nothing keeps, changed by *values*."""
    rows = np.zeros(1, dtype=TOLD if "/" in "".join(values) else DTYPE)
    if "/" in "".join(values):
        rows["request/confidence_weight"] = np.nan
        rows["request/canary_difference"] = 255
    for name, value in (NEVER_RANDOM | values).items():
        rows[name] = value
    return rows


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, None),
        ({"outcome": 1}, None),
        ({"outcome": 4}, None),
        ({"outcome": 2}, "error"),
        ({"outcome": 3}, "degraded"),
        ({"flags": 4}, "low_quality"),
        ({"confidence": 0.3}, "low_confidence"),
        ({"confidence": float("nan")}, None),
        ({"duration_ns": 300_000_000}, "slow"),
        ({"duration_ns": 299_999_999}, None),
        ({"duration_ns": 300_000_000, "input_length": 100}, None),
        ({"duration_ns": 1_500_000_000, "input_length": 501}, "slow"),
        ({"duration_ns": 1_500_000_000, "input_length": -1}, "slow"),
        ({"flags": 2}, "upstream"),
        ({"seq": 9}, "first"),
        ({"trace_lo": 0}, "random"),
        ({"outcome": 2, "flags": 6, "seq": 0}, "error"),
    ],
)
def test_each_rule_keeps_what_it_says(values: dict[str, Any], reason: str | None) -> None:
    """One rule after the other; the first that holds is the reason, and a plain or refused request has none."""
    index = int(keep_reasons(rows_of(**values), KeepRules(low_confidence=0.5))[0])
    assert reason == (KEPT_REASONS[index] if index >= 0 else None)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.floats(0, 1))
def test_the_share_is_decided_by_the_trace_id(traces: list[int], share: float) -> None:
    """The lower 64 bits under share x 2**64, as OpenTelemetry's TraceIdRatioBased sampler: services decide alike."""
    rows = np.concatenate([rows_of(trace_lo=trace) for trace in traces])
    kept = keep_reasons(rows, KeepRules(share=share)) >= 0
    bound = share * 2**64
    assert [trace < bound for trace in traces if abs(trace - bound) > 1] == [
        bool(k) for k, trace in zip(kept, traces, strict=True) if abs(trace - bound) > 1
    ]


def test_share_one_keeps_all_and_zero_none() -> None:
    """The ends of the share are exact."""
    rows = np.concatenate([rows_of(trace_lo=2**64 - 1), rows_of(trace_lo=0)])
    assert (keep_reasons(rows, KeepRules(share=1.0)) >= 0).all()
    assert (keep_reasons(rows, KeepRules(share=0.0)) < 0).all()


@pytest.mark.parametrize(
    ("values", "off"),
    [
        ({"flags": 2}, {"upstream": False}),
        ({"seq": 0}, {"first": 0}),
        ({"outcome": 2}, {"errors": False}),
        ({"outcome": 3}, {"degraded": False}),
        ({"flags": 4}, {"low_quality": False}),
        ({"request/canary_difference": 1}, {"canary_difference": False}),
        ({"request/confidence_weight": 0.5, "trace_lo": 0}, {"drift_share": 0.0, "share": 0.0}),
    ],
)
def test_each_rule_can_be_switched_off(values: dict[str, Any], off: dict[str, Any]) -> None:
    """The rules are settings."""
    assert keep_reasons(rows_of(**values), KeepRules())[0] >= 0
    assert keep_reasons(rows_of(**values), KeepRules(**off))[0] == -1


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"request/canary_difference": 1}, "canary_difference"),
        ({"request/canary_difference": 0}, None),
        ({"request/canary_difference": 255}, None),
        ({"request/confidence_weight": 0.6, "trace_lo": 2**62}, "drift"),
        ({"request/confidence_weight": 0.6, "trace_lo": 2**63 + 1}, None),
        ({"request/confidence_weight": 1.0, "trace_lo": 2**62}, None),
        ({"request/confidence_weight": float("nan"), "trace_lo": 2**62}, None),
        ({"request/confidence_weight": 0.6, "request/canary_difference": 1, "trace_lo": 0}, "canary_difference"),
    ],
)
def test_what_only_some_services_tell_keeps_too(values: dict[str, Any], reason: str | None) -> None:
    """A canary's other answer, and a share of what was answered while a drift lasted; 255 and NaN are no answer."""
    index = int(keep_reasons(rows_of(**values), KeepRules(drift_share=0.5))[0])
    assert reason == (KEPT_REASONS[index] if index >= 0 else None)


ERROR, SLOW, RANDOM = (KEPT_REASONS.index(reason) for reason in ("error", "slow", "random"))


def shed(budget: KeepBudget, reasons: list[int], traces: list[int] | None = None) -> list[bool]:
    """Ask a budget about one look at the rows."""
    ids = np.array(traces or range(len(reasons)), dtype=np.uint64)
    over: list[bool] = budget.shed(np.array(reasons, dtype=np.int64), ids).tolist()
    return over


def test_the_random_share_is_shed_first_and_errors_last() -> None:
    """With room for two (two seconds of one), of five that are worth keeping; a row that is not costs nothing."""
    wanted = [RANDOM, -1, ERROR, SLOW, RANDOM, ERROR]

    assert [True, False, False, True, True, False] == shed(KeepBudget(1.0, lambda: 0.0), wanted)


def test_of_one_rule_the_lowest_trace_ids_stay() -> None:
    """Two services that shed half of the same traces shed the same half."""
    assert [True, False, True, False] == shed(KeepBudget(1.0, lambda: 0.0), [RANDOM] * 4, [9, 1, 8, 2])


def test_the_budget_comes_back_with_time_and_is_not_saved_up_for_long() -> None:
    """Three at once are two too many after one second, and none after an hour more than two."""
    now = [0.0]
    budget = KeepBudget(1.0, lambda: now[0])
    left = []
    for seconds in (0.0, 0.0, 1.0, 3600.0):
        now[0] += seconds
        left.append(shed(budget, [ERROR] * 3).count(False))

    assert [2, 0, 1, 2] == left


def test_without_a_bound_nothing_is_shed() -> None:
    """0 is no bound, and an empty look no error."""
    assert [False] * 100 == shed(KeepBudget(0.0), [RANDOM] * 100)
    assert [] == shed(KeepBudget(5.0), [])
