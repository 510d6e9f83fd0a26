"""Are the texts themselves damaged: how many, by what, whose, and do the others' stay as they were?"""

from __future__ import annotations

from collections import Counter

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Mask, Rows
from runbooks.steps.concentration import most_beyond_its_share

__all__ = ["low_rise", "low_share", "one_client", "others_low", "reason"]

COLUMNS = ("client_release", "agent_family", "device_type")
LEAST_LOW = 10
# Of real reviews one in some thousands is marked; ratios to less than this would magnify noise.
QUIET_SHARE = 0.005
# Fewer requests than this have no share to speak of.
LEAST_REQUESTS = 20.0
PHOTOS = "/v1/photos"
_QUERY = f'increase({signals.LOW_QUALITY}{{modality="text"}}[1m])'


def _low(rows: Rows) -> Mask:
    """Return which requests had a text of low quality; photos have another step."""
    reasons = rows.labels.get("request/quality_reason")
    if reasons is None:
        return np.zeros(len(rows), dtype=bool)
    return np.asarray((reasons != "") & ~_photos(rows), dtype=bool)


def _photos(rows: Rows) -> Mask:
    """Return which requests were photos."""
    verdicts, modality = rows.labels.get("photo.quality/verdict"), rows.labels.get("request/quality_modality")
    of_verdict = np.zeros(len(rows), dtype=bool) if verdicts is None else verdicts != ""
    return np.asarray(of_verdict if modality is None else of_verdict | (modality == "image"), dtype=bool)


def _share(evidence: Evidence, span: tuple[float, float]) -> tuple[float, str] | None:
    """Return the share of requests with a text of low quality, and how many that is of how many; None when unknown."""
    rows = evidence.rows
    if rows is not None:
        inside = rows.between(*span) & ~_photos(rows)
        low, total = float((_low(rows) & inside).sum()), float(inside.sum())
    else:
        found, requests = evidence.get(signals.LOW_QUALITY), evidence.get(signals.REQUESTS)
        if found is None or requests is None:
            return None
        texts = [one for one in found if one.labels.get("modality") == "text"]
        sent = [one for one in requests if one.labels.get("route") != PHOTOS]
        low, total = signals.increase(texts, *span), signals.increase(sent, *span)
    return None if total < LEAST_REQUESTS else (low / total, f"{low:.0f} of {total:.0f} requests")


def _source(evidence: Evidence) -> tuple[str, str]:
    return ("ring", "rows: request/quality_reason") if evidence.rows is not None else ("prometheus", _QUERY)


def low_share(evidence: Evidence) -> StepResult:
    """Return the share of requests whose text is of low quality in the incident."""
    found = _share(evidence, evidence.window.incident)
    value, detail = (None, "too few requests") if found is None else found
    return StepResult("quality.low_share", value, *_source(evidence), detail)


def low_rise(evidence: Evidence) -> StepResult:
    """Return that share over the share before, which is taken as half a percent at least."""
    now, before = _share(evidence, evidence.window.incident), _share(evidence, evidence.window.baseline)
    if now is None or before is None:
        return StepResult("quality.low_rise", None, *_source(evidence), "no healthy time to compare with")
    detail = f"{before[0]:.1%} before, {now[0]:.1%} now"
    return StepResult("quality.low_rise", now[0] / max(before[0], QUIET_SHARE), *_source(evidence), detail)


def _guilty(evidence: Evidence, rows: Rows) -> tuple[str, str, Mask, float] | None:
    """Return column, value, its rows and how far low quality comes from it beyond its share of the others (to 1)."""
    inside = rows.between(*evidence.window.incident) & ~_photos(rows)
    low = _low(rows) & inside
    if low.sum() < LEAST_LOW:
        return None
    return most_beyond_its_share(rows, low, inside & ~low, COLUMNS)


def one_client(evidence: Evidence) -> StepResult:
    """Return how far the damaged texts come from one client: 1 all, 0 as many as it sends of the others."""
    rows, step, query = evidence.rows, "quality.one_client", f"rows: quality_reason by {', '.join(COLUMNS)}"
    found = None if rows is None else _guilty(evidence, rows)
    if found is None:
        return StepResult(step, None, "ring", query, "too few damaged texts, or no rows")
    column, value, _, beyond = found
    return StepResult(step, beyond, "ring", query, f"the damaged texts come from {column} = {value}")


def others_low(evidence: Evidence) -> StepResult:
    """Return the share of damaged texts among all other clients."""
    rows, step, query = evidence.rows, "quality.others_low", "rows: quality_reason of all other clients"
    found = None if rows is None else _guilty(evidence, rows)
    if rows is None or found is None:
        return StepResult(step, None, "ring", query, "too few damaged texts, or no rows")
    others = ~found[2] & rows.between(*evidence.window.incident) & ~_photos(rows)
    if others.sum() < LEAST_REQUESTS:
        return StepResult(step, None, "ring", query, "no other client to compare with")
    low = int((others & _low(rows)).sum())
    return StepResult(step, low / float(others.sum()), "ring", query, f"{low} of {int(others.sum())} requests")


def reason(evidence: Evidence) -> StepResult:
    """Return what damages the texts most often."""
    rows, step = evidence.rows, "quality.reason"
    if rows is None:
        since, until = evidence.window.incident
        counts = Counter[str]()
        for one in evidence.get(signals.LOW_QUALITY) or ():
            counts[one.labels.get("reason", "")] += round(signals.increase([one], since, until))
    else:
        low = _low(rows) & rows.between(*evidence.window.incident)
        counts = Counter(rows.labels["request/quality_reason"][low].tolist() if low.any() else ())
    named = [(name, n) for name, n in counts.most_common() if n > 0]
    if not named:
        return StepResult(step, None, *_source(evidence), "no text is damaged")
    told = ", ".join(f"{name} {n}" for name, n in named)
    return StepResult(step, named[0][0], *_source(evidence), f"by reason: {told}")
