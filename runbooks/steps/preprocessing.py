"""Are texts prepared as in the training of the model, since when not, and what does it cost the answers?"""

from __future__ import annotations

import numpy as np

from runbooks.evidence import Evidence, Series, StepResult
from runbooks.preprocess_queries import PREPROCESS_MISMATCH
from runbooks.rows import Floats

__all__ = ["confidence_fall", "fingerprints", "fingerprints_before", "unknown_rise"]

UNKNOWN, CONFIDENCE = "sentiment.tokenizer/unknown_ratio", "confidence"
# Fewer answers than this have no mean to speak of.
LEAST_ROWS = 20


def _state(evidence: Evidence, span: tuple[float, float]) -> tuple[float, Series] | None:
    """Return the highest state in a time and the series that has it; None when nobody told."""
    found: tuple[float, Series] | None = None
    for one in evidence.get(PREPROCESS_MISMATCH) or ():
        inside = (one.times >= span[0]) & (one.times <= span[1])
        if inside.any() and (found is None or one.values[inside].max() > found[0]):
            found = float(one.values[inside].max()), one
    return found


def _told(step: str, evidence: Evidence, span: tuple[float, float]) -> StepResult:
    query = f"max by (trained, served) ({PREPROCESS_MISMATCH})"
    found = _state(evidence, span)
    if found is None:
        return StepResult(step, None, "prometheus", query, "the service told no fingerprints in that time")
    value, series = found
    trained, served = series.labels.get("trained", "?"), series.labels.get("served", "?")
    differ = f"trained with {trained}, served with {served}"
    return StepResult(step, value, "prometheus", query, differ if value else f"trained and served with {served}")


def fingerprints(evidence: Evidence) -> StepResult:
    """Return 1 while serving prepares texts otherwise than the training did, and the two fingerprints."""
    return _told("preprocessing.fingerprints", evidence, evidence.window.incident)


def fingerprints_before(evidence: Evidence) -> StepResult:
    """Return the same of the time before the incident: 0 says that a deploy brought the difference."""
    return _told("preprocessing.fingerprints_before", evidence, evidence.window.baseline)


def _means(evidence: Evidence, column: str) -> tuple[float, float] | None:
    """Return the mean of a column of answered requests before the incident and in it; None when too few tell."""
    rows = evidence.rows
    values: Floats | None = None if rows is None else rows.numbers.get(column)
    if rows is None or values is None:
        return None
    told = rows.answered() & ~np.isnan(values)
    parts = [values[told & rows.between(*span)] for span in (evidence.window.baseline, evidence.window.incident)]
    if min(map(len, parts)) < LEAST_ROWS:
        return None
    return float(parts[0].mean()), float(parts[1].mean())


def unknown_rise(evidence: Evidence) -> StepResult:
    """Return by how much the mean share of unknown tokens of a text is above what it was before."""
    found = _means(evidence, UNKNOWN)
    step, query = "preprocessing.unknown_rise", f"rows: mean of {UNKNOWN}"
    if found is None:
        return StepResult(step, None, "ring", query, "too few answers before or since, or no tokenizer that tells")
    detail = f"unknown tokens of a text: {found[0]:.1%} before, {found[1]:.1%} since"
    return StepResult(step, found[1] - found[0], "ring", query, detail)


def confidence_fall(evidence: Evidence) -> StepResult:
    """Return by how much the mean confidence is below what it was before."""
    found = _means(evidence, CONFIDENCE)
    step, query = "preprocessing.confidence_fall", "rows: mean of confidence"
    if found is None:
        return StepResult(step, None, "ring", query, "too few answers before or since")
    detail = f"mean confidence: {found[0]:.3f} before, {found[1]:.3f} since"
    return StepResult(step, found[0] - found[1], "ring", query, detail)
