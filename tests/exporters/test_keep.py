from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.keep import KeepRules, keep_reasons
from exporters.labels import KEPT_REASONS
from probes.schema import FIXED_COLUMNS, KINDS

DTYPE = np.dtype([(column.name, KINDS[column.kind].dtype) for column in FIXED_COLUMNS])
NEVER_RANDOM = {"trace_lo": 2**64 - 1, "seq": 1000, "input_length": 50, "confidence": 0.9}


def rows_of(**values: Any) -> np.ndarray[Any, Any]:
    """One row that nothing keeps, changed by *values*."""
    rows = np.zeros(1, dtype=DTYPE)
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


def test_upstream_and_first_can_be_switched_off() -> None:
    """The rules are settings."""
    rows = rows_of(flags=2, seq=0)
    assert keep_reasons(rows, KeepRules(upstream=False, first=0))[0] == -1
