"""Do labels grow without end: what did the recorder refuse, in which label, and do the requests mind?"""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.rows import OUTCOMES

__all__ = ["crowded_label", "hurt_share", "refused_ratio", "refused_rise", "series_growth"]

LEAST_REQUESTS = 20
# One in a hundred requests: ratios to less would only magnify noise.
QUIET_RATIO = 0.01
_QUERY = f"sum by (reason) (increase({signals.LABELS_REFUSED}[1m]))"
_FAILED = tuple(OUTCOMES.index(name) for name in ("error", "degraded", "disconnected"))


def _ratio(evidence: Evidence, since: float, until: float) -> tuple[float | None, str]:
    """Return refused values per request in a time, and where it is from; None when unknown."""
    found: list[tuple[float, str]] = []
    refused, requests = evidence.get(signals.LABELS_REFUSED), evidence.get(signals.REQUESTS)
    if refused is not None and requests is not None:
        total = signals.increase(requests, since, until)
        if total >= LEAST_REQUESTS:
            found.append((signals.increase(refused, since, until) / total, "prometheus"))
    rows = evidence.rows
    if rows is not None and (count := int(rows.between(since, until).sum())) >= LEAST_REQUESTS:
        inside = rows.between(since, until)
        crowded = np.zeros(len(rows), dtype=bool)
        for mask in rows.refused_texts.values():
            crowded |= mask
        found.append((float((crowded & inside).sum()) / count, "ring"))
    # A refused attribute or stage leaves nothing in the rows, so the larger of the two is nearer to the truth.
    return max(found) if found else (None, "prometheus")


def refused_ratio(evidence: Evidence) -> StepResult:
    """Return how many values, attributes or stages the recorder refused for each request of the incident."""
    value, source = _ratio(evidence, *evidence.window.incident)
    detail = "too few requests, or no source" if value is None else f"{value:.2f} refused for each request"
    return StepResult("labels.refused_ratio", value, source, _QUERY, detail)


def refused_rise(evidence: Evidence) -> StepResult:
    """Return that ratio over the ratio before, which is taken as one in a hundred at least."""
    now, source = _ratio(evidence, *evidence.window.incident)
    before, _ = _ratio(evidence, *evidence.window.baseline)
    value = None if now is None or before is None else now / max(before, QUIET_RATIO)
    detail = "no healthy time to compare with" if value is None else f"{before:.2f} before, {now:.2f} now"
    return StepResult("labels.refused_rise", value, source, _QUERY, detail)


def crowded_label(evidence: Evidence) -> StepResult:
    """Return the label of the rows in which most values were refused."""
    rows, step, query = evidence.rows, "labels.crowded_label", 'rows: text columns with the value "(other)"'
    if rows is None:
        return StepResult(step, None, "ring", query, "no rows")
    inside = rows.between(*evidence.window.incident)
    counts = {name: int((mask & inside).sum()) for name, mask in rows.refused_texts.items()}
    name = max(counts, key=lambda one: counts[one], default="")
    if not name or not counts[name]:
        return StepResult(step, None, "ring", query, "no value of a label was refused")
    text = f"{name}: refused in {counts[name]} of {int(inside.sum())} requests"
    return StepResult(step, name, "ring", query, text)


def hurt_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's requests that failed or were slow: the recorder's bounds cost none."""
    rows = evidence.rows
    inside = None if rows is None else rows.between(*evidence.window.incident)
    if rows is None or inside is None or inside.sum() < LEAST_REQUESTS:
        return StepResult("labels.hurt_share", None, "ring", "rows", "too few requests, or no rows")
    hurt = inside & (evidence.slow() | np.isin(rows.outcome, _FAILED))
    value = float(hurt.sum() / inside.sum())
    return StepResult("labels.hurt_share", value, "ring", "rows: outcome, duration", f"{value:.1%} failed or were slow")


def _level(series: tuple[Series, ...], since: float, until: float) -> float | None:
    values = [one.values[(one.times >= since) & (one.times <= until)] for one in series]
    highest = [float(one.max()) for one in values if len(one)]
    return max(highest) if highest else None


def series_growth(evidence: Evidence) -> StepResult:
    """Return the number of series that the exporter shows, now over before."""
    series = evidence.get(signals.SERIES) or ()
    now, before = _level(series, *evidence.window.incident), _level(series, *evidence.window.baseline)
    value = now / before if now is not None and before else None
    detail = "no healthy time to compare with" if value is None else f"{before:.0f} series before, {now:.0f} now"
    return StepResult("labels.series_growth", value, "prometheus", signals.SERIES, detail)
