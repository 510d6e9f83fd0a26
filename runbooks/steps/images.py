"""Are the photos blurred: how many, whose, more than usual, and are they as many as ever?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Mask, Rows
from runbooks.steps.concentration import most_beyond_its_share

__all__ = ["blurred_rise", "blurred_share", "count_rise", "one_client", "others_blurred"]

COLUMNS: Final = ("client_release", "device_type", "agent_family")
LEAST_BLURRED: Final = 10
# Fewer photos than this have no share to speak of.
LEAST_PHOTOS: Final = 20.0
# People who take photos by hand blur some; ratios to less than this would magnify noise.
QUIET_SHARE: Final = 0.02
_VERDICT: Final = "photo.quality/verdict"
# The histogram's bound at the probe's threshold (requirements A6); the verdicts in rows are the probe's own.
_BLURRED_BELOW: Final = 50.0
_QUERY: Final = f'increase({signals.SHARPNESS_BUCKET}{{le="50.0"}}[1m])'

# Kind of device -> blurred photos and photos of which it can be told.
_Counts = Mapping[str, tuple[float, float]]


def _is(rows: Rows, *verdicts: str) -> Mask:
    """Return which requests were photos with one of the verdicts."""
    found = rows.labels.get(_VERDICT)
    return np.zeros(len(rows), dtype=bool) if found is None else np.isin(found, verdicts)


def _counts(evidence: Evidence, span: tuple[float, float]) -> _Counts | None:
    """Return blurred and judged photos by kind of device; None when neither rows nor metrics can tell."""
    rows = evidence.rows
    if rows is not None:
        inside, devices = rows.between(*span), rows.labels.get("device_type", np.full(len(rows), "", dtype=object))
        blurred, judged = _is(rows, "blurred") & inside, _is(rows, "blurred", "sharp") & inside
        return {
            str(device): (float((blurred & (devices == device)).sum()), float((judged & (devices == device)).sum()))
            for device in set(devices[judged].tolist())
        }
    series = evidence.get(signals.SHARPNESS_BUCKET)
    if series is None:
        return None
    found = {}
    for device in {one.labels.get("device_type", "") for one in series}:
        counts = signals.histogram([one for one in series if one.labels.get("device_type", "") == device], *span)
        found[device] = (sum(n for bound, n in counts.items() if bound <= _BLURRED_BELOW), sum(counts.values()))
    return found


def _worst(counts: _Counts | None) -> str | None:
    """Return the kind of device with the most blurred photos for its number; None when none has enough."""
    shares = {
        device: blurred / judged
        for device, (blurred, judged) in (counts or {}).items()
        if blurred >= LEAST_BLURRED and judged >= LEAST_PHOTOS
    }
    return max(shares, key=lambda device: shares[device]) if shares else None


def _source(evidence: Evidence) -> tuple[str, str]:
    return ("ring", f"rows: {_VERDICT}") if evidence.rows is not None else ("prometheus", _QUERY)


def blurred_share(evidence: Evidence) -> StepResult:
    """Return the share of blurred photos of the kind of device that has most."""
    counts = _counts(evidence, evidence.window.incident)
    worst = _worst(counts)
    if counts is None or worst is None:
        return StepResult("images.blurred_share", None, *_source(evidence), "too few blurred photos")
    blurred, judged = counts[worst]
    detail = f"{blurred:.0f} of {judged:.0f} photos of devices of the kind {worst or 'unknown'}"
    return StepResult("images.blurred_share", blurred / judged, *_source(evidence), detail)


def blurred_rise(evidence: Evidence) -> StepResult:
    """Return that share over the same devices' before, else over all other devices' now; that is 2% at least."""
    step, now = "images.blurred_rise", _counts(evidence, evidence.window.incident)
    worst = _worst(now)
    if now is None or worst is None:
        return StepResult(step, None, *_source(evidence), "too few blurred photos")
    share = now[worst][0] / now[worst][1]
    before = (_counts(evidence, evidence.window.baseline) or {}).get(worst, (0.0, 0.0))
    others = [one for device, one in now.items() if device != worst]
    compared, whose = before, "of the same devices before"
    if before[1] < LEAST_PHOTOS:
        compared, whose = (sum(one[0] for one in others), sum(one[1] for one in others)), "of all other devices"
    if compared[1] < LEAST_PHOTOS:
        return StepResult(step, None, *_source(evidence), "no photos before, and no other device to compare with")
    usual = compared[0] / compared[1]
    return StepResult(
        step, share / max(usual, QUIET_SHARE), *_source(evidence), f"{share:.1%} now, {usual:.1%} {whose}"
    )


def count_rise(evidence: Evidence) -> StepResult:
    """Return how many photos came in a second over how many came before."""
    step, window = "images.count_rise", evidence.window
    now, before = _counts(evidence, window.incident), _counts(evidence, window.baseline)
    many, few = (sum(judged for _, judged in (counts or {}).values()) for counts in (now, before))
    if few < LEAST_PHOTOS:
        return StepResult(step, None, *_source(evidence), "too few photos before")
    rates = [n / max(until - since, 1.0) for n, (since, until) in ((many, window.incident), (few, window.baseline))]
    detail = f"{rates[0]:.1f} photos a second now, {rates[1]:.1f} before"
    return StepResult(step, rates[0] / rates[1], *_source(evidence), detail)


def _guilty(evidence: Evidence, rows: Rows) -> tuple[str, str, Mask, float] | None:
    """Return column, value, its rows and how far blurred photos come from it beyond its share of sharp ones (to 1)."""
    inside = rows.between(*evidence.window.incident)
    blurred, sharp = _is(rows, "blurred") & inside, _is(rows, "sharp") & inside
    if blurred.sum() < LEAST_BLURRED:
        return None
    return most_beyond_its_share(rows, blurred, sharp, COLUMNS)


def one_client(evidence: Evidence) -> StepResult:
    """Return how far the blurred photos come from one client: 1 all, 0 as many as it sends of the sharp ones."""
    rows, step, query = evidence.rows, "images.one_client", f"rows: {_VERDICT} by {', '.join(COLUMNS)}"
    found = None if rows is None else _guilty(evidence, rows)
    if found is None:
        return StepResult(step, None, "ring", query, "too few blurred photos, or no rows")
    column, value, _, beyond = found
    return StepResult(step, beyond, "ring", query, f"the blurred photos come from {column} = {value}")


def others_blurred(evidence: Evidence) -> StepResult:
    """Return the share of blurred photos among all other clients."""
    rows, step, query = evidence.rows, "images.others_blurred", f"rows: {_VERDICT} of all other clients"
    found = None if rows is None else _guilty(evidence, rows)
    if rows is None or found is None:
        return StepResult(step, None, "ring", query, "too few blurred photos, or no rows")
    others = ~found[2] & rows.between(*evidence.window.incident) & _is(rows, "blurred", "sharp")
    if others.sum() < LEAST_PHOTOS:
        return StepResult(step, None, "ring", query, "no other client to compare with")
    blurred = int((others & _is(rows, "blurred")).sum())
    return StepResult(step, blurred / float(others.sum()), "ring", query, f"{blurred} of {int(others.sum())} photos")
