"""Do short texts wait because long ones stand in the same queue, and is it these that take the model's time?"""

from __future__ import annotations

import numpy as np

from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Floats, Mask, Rows

__all__ = ["same_queue_share", "short_wait_ratio", "short_wait_seconds", "work_share"]

DISPATCH, TOKENIZER, MODEL = "scheduler.dispatch", "sentiment.tokenizer", "model.forward"
WAIT, QUEUE = f"{DISPATCH}/queue_wait_ns", f"{DISPATCH}/queue"
NORMAL = "normal"
# Fewer requests decide nothing about a mean.
LEAST_ROWS = 10
# A wait of less is nothing to compare with.
LEAST_SECONDS = 0.001
_QUERY = f"rows: {WAIT} and {QUEUE} by length class"


def _result(step: str, value: float | None, detail: str) -> StepResult:
    return StepResult(f"long_texts.{step}", value, "ring", _QUERY, detail)


def _waiting(rows: Rows | None, since: float, until: float, bucket: str) -> Mask | None:
    """Return which requests of a length class waited in a queue; None when rows do not tell."""
    if rows is None or WAIT not in rows.numbers or QUEUE not in rows.labels:
        return None
    return np.asarray(rows.between(since, until) & (rows.bucket == bucket) & ~np.isnan(rows.numbers[WAIT]))


def _short_wait(evidence: Evidence, since: float, until: float) -> float | None:
    """Return the mean seconds that short texts waited in the normal queue; None when too few tell."""
    rows, told = evidence.rows, _waiting(evidence.rows, since, until, "short")
    if rows is None or told is None:
        return None
    told = told & (rows.labels[QUEUE] == NORMAL)
    return float(rows.numbers[WAIT][told].mean()) / 1e9 if told.sum() >= LEAST_ROWS else None


def short_wait_seconds(evidence: Evidence) -> StepResult:
    """Return the mean seconds that short texts waited for a thread."""
    value = _short_wait(evidence, *evidence.window.incident)
    detail = "too few short texts tell how they waited" if value is None else f"{value * 1e3:.0f} ms on average"
    return _result("short_wait_seconds", value, detail)


def short_wait_ratio(evidence: Evidence) -> StepResult:
    """Return that wait over the same of before."""
    now = _short_wait(evidence, *evidence.window.incident)
    before = _short_wait(evidence, *evidence.window.baseline)
    if now is None or before is None:
        return _result("short_wait_ratio", None, "no healthy time with short texts to compare with")
    detail = f"{before * 1e3:.1f} ms before, {now * 1e3:.1f} ms now"
    return _result("short_wait_ratio", now / max(before, LEAST_SECONDS), detail)


def same_queue_share(evidence: Evidence) -> StepResult:
    """Return the share of the long texts that waited in the queue of the short ones."""
    rows, told = evidence.rows, _waiting(evidence.rows, *evidence.window.incident, "long")
    if rows is None or told is None or told.sum() < LEAST_ROWS:
        return _result("same_queue_share", None, "too few long texts tell where they waited")
    value = float((rows.labels[QUEUE][told] == NORMAL).mean())
    return _result("same_queue_share", value, f"{value:.0%} of {told.sum()} long texts")


def work_share(evidence: Evidence) -> StepResult:
    """Return the share of the threads' time, in tokenizer and model, that long texts took."""
    rows = evidence.rows
    if rows is None or MODEL not in rows.stages:
        return _result("work_share", None, "no request tells of its time in the model")
    told = rows.between(*evidence.window.incident) & ~np.isnan(rows.stages[MODEL][1])
    seconds = _work(rows)
    total = float(seconds[told].sum())
    if told.sum() < LEAST_ROWS or not total:
        return _result("work_share", None, "too few requests reached the model")
    long = told & (rows.bucket == "long")
    value = float(seconds[long].sum()) / total
    return _result("work_share", value, f"{long.sum()} of {told.sum()} requests take {value:.0%} of the time")


def _work(rows: Rows) -> Floats:
    """Return each request's seconds in tokenizer and model."""
    own = np.nan_to_num(rows.stages[MODEL][1])
    return own + np.nan_to_num(rows.stages[TOKENIZER][1]) if TOKENIZER in rows.stages else own
