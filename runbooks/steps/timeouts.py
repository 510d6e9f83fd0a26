"""Do callers give up by a clock of their own: how many, whose, always after the same time, and are others as quick?"""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import OUTCOMES, Mask, Rows
from runbooks.steps.concentration import most_beyond_its_share

__all__ = ["answers_slower", "left_rise", "left_share", "one_client", "same_time"]

COLUMNS = ("client_release", "agent_family", "device_type")
LEAST_LEFT = 10
LEAST_REQUESTS = 20.0
# As for refusals: below, a page is closed by hand now and then, and ratios to it would only magnify noise.
QUIET_SHARE = 0.005
# A timeout is a constant: a loop that is looked at 20 ms late and a network's jitter lie within a fifth of it.
SAME = 0.2
_QUERY = f'increase({signals.REQUESTS}{{outcome="disconnected"}}[1m])'


def _left(rows: Rows) -> Mask:
    """Return which requests their callers left."""
    return np.asarray(rows.outcome == OUTCOMES.index("disconnected"))


def _share(evidence: Evidence, span: tuple[float, float]) -> tuple[float, str] | None:
    """Return the share of accepted requests that were left, and how many that is of how many; None when unknown."""
    rows = evidence.rows
    if rows is not None:
        inside = rows.between(*span) & (rows.outcome != OUTCOMES.index("refused"))
        left, total = float((_left(rows) & inside).sum()), float(inside.sum())
    else:
        series = evidence.get(signals.REQUESTS)
        if series is None:
            return None
        left = signals.increase([one for one in series if one.labels.get("outcome") == "disconnected"], *span)
        total = signals.increase([one for one in series if one.labels.get("outcome") != "refused"], *span)
    return None if total < LEAST_REQUESTS else (left / total, f"{left:.0f} of {total:.0f} requests")


def _source(evidence: Evidence) -> tuple[str, str]:
    return ("ring", "rows: outcome") if evidence.rows is not None else ("prometheus", _QUERY)


def left_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's accepted requests whose callers left before the answer."""
    found = _share(evidence, evidence.window.incident)
    value, detail = (None, "too few requests") if found is None else found
    return StepResult("timeouts.left_share", value, *_source(evidence), detail)


def left_rise(evidence: Evidence) -> StepResult:
    """Return that share over the share before, which is taken as half a percent at least."""
    now, before = _share(evidence, evidence.window.incident), _share(evidence, evidence.window.baseline)
    if now is None or before is None:
        return StepResult("timeouts.left_rise", None, *_source(evidence), "no healthy time to compare with")
    detail = f"{before[0]:.1%} before, {now[0]:.1%} now"
    return StepResult("timeouts.left_rise", now[0] / max(before[0], QUIET_SHARE), *_source(evidence), detail)


def same_time(evidence: Evidence) -> StepResult:
    """Return the share of those who left that did so within a fifth of the median time: 1 is a timeout."""
    rows, step, query = evidence.rows, "timeouts.same_time", "rows: duration of those whose callers left"
    if rows is None:
        return StepResult(step, None, "ring", query, "no rows")
    left = _left(rows) & rows.between(*evidence.window.incident)
    if left.sum() < LEAST_LEFT:
        return StepResult(step, None, "ring", query, "too few callers left")
    seconds = rows.duration_s[left]
    median = float(np.median(seconds))
    value = float((np.abs(seconds - median) <= SAME * median).mean())
    return StepResult(step, value, "ring", query, f"{value:.0%} of {left.sum()} left after {median * 1000:.0f} ms")


def answers_slower(evidence: Evidence) -> StepResult:
    """Return the median time of the answered requests over that of the time before: near 1 the service is as ever."""
    rows, step, query = evidence.rows, "timeouts.answers_slower", "rows: median duration of answered requests"
    if rows is None:
        return StepResult(step, None, "ring", query, "no rows")
    now, before = (
        rows.duration_s[rows.answered() & rows.between(*span)]
        for span in (evidence.window.incident, evidence.window.baseline)
    )
    if min(len(now), len(before)) < LEAST_REQUESTS:
        return StepResult(step, None, "ring", query, "too few answers to compare")
    medians = float(np.median(now)), float(np.median(before))
    detail = f"{medians[1] * 1000:.1f} ms before, {medians[0] * 1000:.1f} ms now"
    return StepResult(step, medians[0] / max(medians[1], 1e-9), "ring", query, detail)


def one_client(evidence: Evidence) -> StepResult:
    """Return how far those who left are one client: 1 all of them, 0 as many as it sends of the others."""
    rows, step, query = evidence.rows, "timeouts.one_client", f"rows: outcome by {', '.join(COLUMNS)}"
    if rows is None:
        return StepResult(step, None, "ring", query, "no rows")
    inside = rows.between(*evidence.window.incident)
    left = _left(rows) & inside
    if left.sum() < LEAST_LEFT:
        return StepResult(step, None, "ring", query, "too few callers left")
    found = most_beyond_its_share(rows, left, inside & ~left, COLUMNS)
    if found is None:
        return StepResult(step, None, "ring", query, "no column tells clients apart")
    column, value, _, beyond = found
    return StepResult(step, beyond, "ring", query, f"{column} = {value} leaves")
