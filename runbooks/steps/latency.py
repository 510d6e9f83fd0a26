"""Latency against the service's own healthy time, by length class: one slow length points elsewhere than all."""

from __future__ import annotations

import numpy as np

from exporters.names import INPUT_BUCKETS, OBJECTIVES_SECONDS
from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult

__all__ = ["all_lengths_slower", "objective_missed", "slow_share"]

# A tail of fewer requests than this is one request's luck.
LEAST_REQUESTS = 20


def _tail(evidence: Evidence, bucket: str, since: float, until: float) -> float | None:
    """Return the P95 of one length class in seconds, from rows, else from the histogram; None when too few."""
    rows = evidence.rows
    if rows is not None:
        durations = rows.duration_s[(rows.bucket == bucket) & rows.answered() & rows.between(since, until)]
        return float(np.quantile(durations, 0.95)) if len(durations) >= LEAST_REQUESTS else None
    series: list[Series] = [
        one for one in evidence.get(signals.LATENCY_BUCKET) or () if one.labels.get("input_bucket") == bucket
    ]
    counts = signals.histogram(series, since, until)
    return signals.quantile(counts, 0.95) if sum(counts.values()) >= LEAST_REQUESTS else None


def all_lengths_slower(evidence: Evidence) -> StepResult:
    """Return the smallest ratio of P95 now to P95 before over the length classes: above 1 when all suffer."""
    ratios = {}
    for bucket in INPUT_BUCKETS:
        now = _tail(evidence, bucket, *evidence.window.incident)
        before = _tail(evidence, bucket, *evidence.window.baseline)
        if now is not None and before:
            ratios[bucket] = now / before
    source = "ring" if evidence.rows is not None else "prometheus"
    # The smallest: one class that is as fast as ever speaks against a cause that hits all.
    value = min(ratios.values(), default=None)
    detail = ", ".join(f"{bucket} {ratio:.1f}x" for bucket, ratio in ratios.items()) or "too few requests to compare"
    return StepResult(
        "latency.all_lengths_slower", value, source, f"P95 by input_bucket of {signals.LATENCY_BUCKET}", detail
    )


def objective_missed(evidence: Evidence) -> StepResult:
    """Return the largest P95 over its class's objective (0.3, 0.8, 1.5 s: requirements row A10)."""
    shares = {}
    for bucket, objective in OBJECTIVES_SECONDS.items():
        now = _tail(evidence, bucket, *evidence.window.incident)
        if now is not None:
            shares[bucket] = now / objective
    source = "ring" if evidence.rows is not None else "prometheus"
    value = max(shares.values(), default=None)
    detail = (
        ", ".join(f"{bucket} {share:.0%} of its objective" for bucket, share in shares.items()) or "too few requests"
    )
    return StepResult(
        "latency.objective_missed", value, source, f"P95 of {signals.LATENCY_BUCKET} over its objective", detail
    )


def slow_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's requests that are slow for their length class."""
    rows = evidence.rows
    count = 0 if rows is None else int(rows.between(*evidence.window.incident).sum())
    if rows is None or not count:
        return StepResult("latency.slow_share", None, "ring", "rows", "no requests in the incident")
    value = float((evidence.slow() & rows.between(*evidence.window.incident)).sum()) / count
    return StepResult("latency.slow_share", value, "ring", "rows", f"{value:.1%} of {count} requests are slow")
