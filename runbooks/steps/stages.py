"""Where slow requests spend their extra time: in one place, or wherever they wait for the loop."""

from __future__ import annotations

import numpy as np

from runbooks.evidence import Evidence, StepResult

__all__ = ["places_stretched"]

LEAST_SLOW_ROWS = 10
# A place with less than this share of the extra time is a bystander.
LEAST_SHARE = 0.08


def excess_by_place(evidence: Evidence) -> dict[str, float]:
    """Return each stage's share (and that outside of stages) of the extra time of slow requests; empty when unknown."""
    rows = evidence.rows
    if rows is None or not rows.stages:
        return {}
    slow = evidence.slow() & rows.between(*evidence.window.incident)
    healthy = rows.between(*evidence.window.baseline) & rows.answered()
    if slow.sum() < LEAST_SLOW_ROWS:
        return {}
    if healthy.sum() < LEAST_SLOW_ROWS:
        healthy = ~evidence.slow() & rows.answered()
    if not healthy.any():
        return {}
    excess = {}
    for place, seconds in rows.self_times().items():
        excess[place] = float(np.maximum(seconds[slow] - np.median(seconds[healthy]), 0.0).sum())
    total = sum(excess.values())
    return {place: seconds / total for place, seconds in excess.items()} if total > 0 else {}


def places_stretched(evidence: Evidence) -> StepResult:
    """Return in how many places at least 8% of the extra time lies: a blocked loop stretches several."""
    shares = excess_by_place(evidence)
    loud = sorted(((share, place) for place, share in shares.items() if share >= LEAST_SHARE), reverse=True)
    detail = ", ".join(f"{place} {share:.0%}" for share, place in loud) or "too few slow requests, or no stages"
    value = float(len(loud)) if shares else None
    return StepResult("stages.places_stretched", value, "ring", "rows: stage durations against the baseline", detail)
