"""Which requests are worth their spans: a pure function of the row's columns, and a budget of them per second.

A refused request is kept by the random share alone: a scanner's thousand 404s tell no more than ten of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.aggregate import bucket_index
from exporters.labels import KEPT_REASONS
from exporters.names import INPUT_BUCKETS, OBJECTIVES_SECONDS, OUTCOMES

__all__ = ["KeepBudget", "KeepRules", "keep_reasons"]

UPSTREAM_SAMPLED: Final = 2
LOW_QUALITY: Final = 4
# Attributes of the request itself (docs/architecture.md, section 2).
CANARY_DIFFERENCE: Final = "request/canary_difference"
DRIFT_WEIGHT: Final = "request/confidence_weight"


@dataclass(frozen=True)
class KeepRules:
    """What is kept.

    Attributes:
        share: Random share of all requests, 0 to 1, decided by the trace id: every service that uses
            the lower 64 bits, as OpenTelemetry's TraceIdRatioBased sampler does, decides alike.
        slow_seconds: Per length class, the duration from which a request is slow; "unknown" is for apps
            without lengths.
        low_confidence: Answers with a confidence below this are kept; 0 keeps none for it.
        first: So many requests after a worker's start are kept, whatever they are.
        upstream: Whether a caller's sampled flag is followed.
        drift_share: Share of the requests that were answered while a drift lasted, by the trace id as *share* is: a
            drift lasts hours, and each of its requests is as good an example as the next.
        canary_difference: Whether answers are kept to which another version of the model answered otherwise.
        errors, degraded, low_quality, unfinished: Whether these are kept.
    """

    share: float = 0.01
    slow_seconds: dict[str, float] = field(default_factory=lambda: {**OBJECTIVES_SECONDS, "unknown": 1.5})
    low_confidence: float = 0.0
    first: int = 10
    upstream: bool = True
    drift_share: float = 0.1
    canary_difference: bool = True
    errors: bool = True
    degraded: bool = True
    low_quality: bool = True
    unfinished: bool = True


def keep_reasons(rows: npt.NDArray[Any], rules: KeepRules) -> npt.NDArray[np.int64]:
    """Return for each row the index into `KEPT_REASONS` of the first rule that keeps it, or -1.

    Args:
        rows: Structured array with the columns of docs/architecture.md, section 2.
        rules: What is kept.
    """
    outcome, flags = rows["outcome"], rows["flags"]
    limits = np.array([round(rules.slow_seconds.get(bucket, 1.5) * 1e9) for bucket in INPUT_BUCKETS], dtype=np.uint64)
    # An absent confidence is NaN, and NaN is below nothing: such a row is not kept for it.
    with np.errstate(invalid="ignore"):
        unsure = rows["confidence"] < rules.low_confidence
    rule_holds = {
        "error": (outcome == OUTCOMES.index("error")) & rules.errors,
        "degraded": (outcome == OUTCOMES.index("degraded")) & rules.degraded,
        "low_quality": (flags & LOW_QUALITY != 0) & rules.low_quality,
        "low_confidence": unsure,
        "canary_difference": (_column(rows, CANARY_DIFFERENCE, 0) == 1) & rules.canary_difference,
        "slow": rows["duration_ns"] >= limits[bucket_index(rows["input_length"])],
        "upstream": (flags & UPSTREAM_SAMPLED != 0) & rules.upstream,
        "first": rows["seq"] < rules.first,
        # The weight is 1 without a drift, and NaN where nobody told of one.
        "drift": (_column(rows, DRIFT_WEIGHT, 1.0) < 1.0) & _drawn(rows, rules.drift_share),
        "random": _drawn(rows, rules.share),
    }
    # From the last rule to the first, so that the first one that holds is what stays.
    chosen = np.full(len(rows), -1, dtype=np.int64)
    for reason in reversed([reason for reason in KEPT_REASONS if reason in rule_holds]):
        chosen[rule_holds[reason]] = KEPT_REASONS.index(reason)
    return chosen


def _column(rows: npt.NDArray[Any], name: str, absent: float) -> npt.NDArray[Any]:
    """Return a column that only some services have, or *absent* for each row."""
    return rows[name] if name in (rows.dtype.names or ()) else np.full(len(rows), absent)


def _drawn(rows: npt.NDArray[Any], share: float) -> npt.NDArray[np.bool_]:
    """Return which rows are in a share of all, by their trace ids."""
    # share 1.0 would be 2**64, which no 64-bit number holds.
    bound = np.uint64(min(int(share * 2**64), 2**64 - 1))
    drawn: npt.NDArray[np.bool_] = (rows["trace_lo"] < bound) | (share >= 1.0)
    return drawn


class KeepBudget:
    """How many requests' spans are kept a second, so that an incident is not what breaks the collector.

    A quiet second is saved up for the next one, no more than one: a look at the rows brings about a second's worth.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with a full budget.

        Args:
            per_second: Requests a second; 0 for no bound.
            clock: Monotonic seconds.
        """
        self._per_second = per_second
        self._clock = clock
        self._left = 2.0 * per_second
        self._at = clock()

    def shed(self, reasons: npt.NDArray[np.int64], trace_lo: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return which kept rows are over the budget: the random share first, then the rules from the last on.

        Args:
            reasons: What `keep_reasons` returned.
            trace_lo: Lower halves of the trace ids; of one rule the lowest stay, so that services shed alike.
        """
        over = np.zeros(len(reasons), dtype=bool)
        kept = np.flatnonzero(reasons >= 0)
        if not self._per_second:
            return over
        now = self._clock()
        self._left = min(2.0 * self._per_second, self._left + (now - self._at) * self._per_second)
        self._at = now
        room = int(self._left)
        if len(kept) > room:
            order = np.lexsort((trace_lo[kept], reasons[kept]))
            over[kept[order[room:]]] = True
        self._left -= min(len(kept), room)
        return over
