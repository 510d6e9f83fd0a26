"""Is personal data masked in one form, or in two at a time, and what parts those who write the one and the other?"""

from __future__ import annotations

from collections import Counter

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Rows

__all__ = ["formats", "formats_before", "other_share", "parted_by"]

# What a deploy changes, the most telling first.
COLUMNS = ("model", "config", "model_version", "worker")
# Fewer masked texts than this tell nothing of shares.
LEAST_MASKED = 10
_QUERY = f"sum by (mask_format) (increase({signals.PII_MASKED}[1m]))"


def _counts(evidence: Evidence, span: tuple[float, float]) -> dict[str, float] | None:
    """Return masked texts by format; None when unknown or too few."""
    rows = evidence.rows
    if rows is not None:
        column = rows.labels.get("request/pii_mask_format")
        found = Counter[str]() if column is None else Counter(column[rows.between(*span)].tolist())
        counts = {name: float(n) for name, n in found.items() if name}
    else:
        series = evidence.get(signals.PII_MASKED)
        if series is None:
            return None
        counts = {}
        for one in series:
            name = one.labels.get("mask_format", "")
            counts[name] = counts.get(name, 0.0) + signals.increase([one], *span)
        counts = {name: n for name, n in counts.items() if n > 0}
    return counts if sum(counts.values()) >= LEAST_MASKED else None


def _source(evidence: Evidence) -> tuple[str, str]:
    return ("ring", "rows: request/pii_mask_format") if evidence.rows is not None else ("prometheus", _QUERY)


def _told(counts: dict[str, float]) -> str:
    return ", ".join(f"format {name}: {n:.0f}" for name, n in sorted(counts.items()))


def formats(evidence: Evidence) -> StepResult:
    """Return how many formats masked texts have in the incident."""
    counts = _counts(evidence, evidence.window.incident)
    if counts is None:
        return StepResult("masking.formats", None, *_source(evidence), "too few texts with personal data")
    return StepResult("masking.formats", float(len(counts)), *_source(evidence), _told(counts))


def other_share(evidence: Evidence) -> StepResult:
    """Return the share of masked texts that are not in the most frequent format."""
    counts = _counts(evidence, evidence.window.incident)
    if counts is None:
        return StepResult("masking.other_share", None, *_source(evidence), "too few texts with personal data")
    value = 1.0 - max(counts.values()) / sum(counts.values())
    return StepResult("masking.other_share", value, *_source(evidence), _told(counts))


def formats_before(evidence: Evidence) -> StepResult:
    """Return how many formats there were before; nothing masked before is no format."""
    counts = _counts(evidence, evidence.window.baseline)
    if counts is None:
        return StepResult("masking.formats_before", None, *_source(evidence), "too few texts with personal data before")
    return StepResult("masking.formats_before", float(len(counts)), *_source(evidence), _told(counts))


def parted_by(evidence: Evidence) -> StepResult:
    """Return what parts the formats: the column of which each value has one format only, and more than one is there."""
    step, query = "masking.parted_by", f"rows: pii_mask_format by {', '.join(COLUMNS)}"
    rows = evidence.rows
    found = None if rows is None else _parting(evidence, rows)
    if found is None:
        return StepResult(step, None, "ring", query, "nothing that rows know parts them, or no rows")
    column, by_value = found
    told = ", ".join(f"{column} {value or '(absent)'} has format {name}" for value, name in sorted(by_value.items()))
    return StepResult(step, column, "ring", query, told)


def _parting(evidence: Evidence, rows: Rows) -> tuple[str, dict[str, str]] | None:
    formats_column = rows.labels.get("request/pii_mask_format")
    if formats_column is None:
        return None
    masked = rows.between(*evidence.window.incident) & (formats_column != "")
    if len(set(formats_column[masked].tolist())) < 2:
        return None
    for column in COLUMNS:
        values = rows.labels.get(column)
        if values is None:
            continue
        pairs = set(zip(values[masked].tolist(), formats_column[masked].tolist(), strict=True))
        by_value = {str(value): str(name) for value, name in pairs}
        if len(by_value) == len(pairs) > 1:
            return column, by_value
    return None
