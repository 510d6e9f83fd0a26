"""Does the target of spans take them, and do the requests mind?"""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import OUTCOMES

__all__ = ["accepted_since", "hurt_share", "lost_spans", "waiting_seconds"]

LEAST_REQUESTS = 20
# Given up for want of an answer; what was rejected or too large reached a target that works.
_UNANSWERED = ("deadline", "queue_full", "not_delivered_at_exit")
_FAILED = tuple(OUTCOMES.index(name) for name in ("error", "degraded", "disconnected"))


def waiting_seconds(evidence: Evidence) -> StepResult:
    """Return for how many seconds the oldest span had waited, at most, in the last minute of the incident.

    What has waited for 60 s is dropped, and the next one has waited for less: a moment is no measure.
    """
    series, until = evidence.get(signals.SPANS_WAITING), evidence.window.incident[1]
    seen = [one.values[(one.times > until - 60.0) & (one.times <= until)] for one in series or ()]
    value = max((float(one.max()) for one in seen if len(one)), default=None)
    detail = "never seen" if value is None else f"the oldest span has waited for {value:.0f} s"
    query = f"max_over_time({signals.SPANS_WAITING}[1m])"
    return StepResult("collector.waiting_seconds", value, "prometheus", query, detail)


def accepted_since(evidence: Evidence) -> StepResult:
    """Return how many spans the target accepted in the last half minute of the incident."""
    series, until = evidence.get(signals.SPANS_SENT), evidence.window.incident[1]
    value = None if series is None else signals.increase(series, until - 30.0, until)
    detail = "never seen" if value is None else f"{value:.0f} accepted in the last 30 s"
    return StepResult("collector.accepted_since", value, "prometheus", f"increase({signals.SPANS_SENT}[30s])", detail)


def lost_spans(evidence: Evidence) -> StepResult:
    """Return how many spans were given up in the incident because nobody took them, and why."""
    query = f"sum by (reason) (increase({signals.SPANS_DROPPED}[1m]))"
    series = evidence.get(signals.SPANS_DROPPED)
    if series is None:
        return StepResult("collector.lost_spans", None, "prometheus", query, "never seen")
    lost = {
        reason: signals.increase(
            [one for one in series if one.labels.get("reason") == reason], *evidence.window.incident
        )
        for reason in _UNANSWERED
    }
    detail = ", ".join(f"{count:.0f} {reason}" for reason, count in lost.items() if count) or "none was given up yet"
    return StepResult("collector.lost_spans", sum(lost.values()), "prometheus", query, detail)


def hurt_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's requests that failed or were slow: a dead target costs them nothing."""
    rows = evidence.rows
    inside = None if rows is None else rows.between(*evidence.window.incident)
    if rows is None or inside is None or inside.sum() < LEAST_REQUESTS:
        return StepResult("collector.hurt_share", None, "ring", "rows", "too few requests, or no rows")
    hurt = inside & (evidence.slow() | np.isin(rows.outcome, _FAILED))
    value = float(hurt.sum() / inside.sum())
    detail = f"{value:.1%} failed or were slow"
    return StepResult("collector.hurt_share", value, "ring", "rows: outcome, duration", detail)
