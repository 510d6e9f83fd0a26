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
    """

    share: float = 0.01
    slow_seconds: dict[str, float] = field(default_factory=lambda: {**OBJECTIVES_SECONDS, "unknown": 1.5})
    low_confidence: float = 0.0
    first: int = 10
    upstream: bool = True


def keep_reasons(rows: npt.NDArray[Any], rules: KeepRules) -> npt.NDArray[np.int64]:
    """Return for each row the index into `KEPT_REASONS` of the first rule that keeps it, or -1.

    Args:
        rows: Structured array with the columns of docs/architecture.md, section 2.
        rules: What is kept.
    """
    outcome, flags = rows["outcome"], rows["flags"]
    limits = np.array([round(rules.slow_seconds.get(bucket, 1.5) * 1e9) for bucket in INPUT_BUCKETS], dtype=np.uint64)
    # share 1.0 would be 2**64, which no 64-bit number holds.
    bound = np.uint64(min(int(rules.share * 2**64), 2**64 - 1))
    # An absent confidence is NaN, and NaN is below nothing: such a row is not kept for it.
    with np.errstate(invalid="ignore"):
        unsure = rows["confidence"] < rules.low_confidence
    rule_holds = {
        "error": outcome == OUTCOMES.index("error"),
        "degraded": outcome == OUTCOMES.index("degraded"),
        "low_quality": (flags & LOW_QUALITY) != 0,
        "low_confidence": unsure,
        "slow": rows["duration_ns"] >= limits[bucket_index(rows["input_length"])],
        "upstream": (flags & UPSTREAM_SAMPLED != 0) & rules.upstream,
        "first": rows["seq"] < rules.first,
        "random": (rows["trace_lo"] < bound) | (rules.share >= 1.0),
    }
    # From the last rule to the first, so that the first one that holds is what stays.
    chosen = np.full(len(rows), -1, dtype=np.int64)
    for reason in reversed([reason for reason in KEPT_REASONS if reason in rule_holds]):
        chosen[rule_holds[reason]] = KEPT_REASONS.index(reason)
    return chosen


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
