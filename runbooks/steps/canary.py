"""Is the other version of the model worse than the stable one? Both answered at one time, so no baseline is needed.

Looked at are five minutes to the incident's end, and more if it began before: a canary that was taken back meanwhile
answers nothing any more, and is what was wrong all the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from runbooks import signals
from runbooks.canary_queries import COMPARISONS, ROLLBACKS, VERSION_REQUESTS
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Mask, Rows

__all__ = ["failed_share", "flipped_share", "over_limit", "rollbacks", "stable_failed_share", "stable_steady"]

LOOK_BACK_SECONDS: Final = 300.0
LEAST_REQUESTS: Final = 10
LEAST_COMPARISONS: Final = 10
# As the service's own rollback (service/config/base.yaml).
SLOWER: Final = 1.5
SLOWER_SECONDS: Final = 0.002
FLIPPED: Final = 0.1
_MODEL: Final = "model.forward"
_FAILURES: Final = ("nan", "error", "late")
_QUERY: Final = f"rows: {_MODEL} by request/version_role"


def _span(evidence: Evidence) -> tuple[float, float]:
    begin, end = evidence.window.incident
    return min(begin, end - LOOK_BACK_SECONDS), end


def _asked(evidence: Evidence, rows: Rows, role: str) -> Mask | None:
    """Return which rows of the time looked at were for a version; None where there is but one."""
    roles = rows.labels.get("request/version_role")
    return None if roles is None else np.asarray(rows.between(*_span(evidence)) & (roles == role))


def _failed(rows: Rows) -> Mask:
    column = rows.labels.get("request/version_failed")
    return np.zeros(len(rows), dtype=bool) if column is None else np.isin(column.astype(str), _FAILURES)


def _medians(evidence: Evidence) -> tuple[float, float] | None:
    """Return the median seconds in the model of the stable version and of the canary; None when too few answered."""
    rows = evidence.rows
    if rows is None or _MODEL not in rows.stages:
        return None
    stable, canary = (_asked(evidence, rows, role) for role in ("stable", "canary"))
    if stable is None or canary is None:
        return None
    column = rows.labels.get("request/version_failed")
    answered = np.ones(len(rows), dtype=bool) if column is None else np.asarray(column.astype(str) == "")
    seconds = rows.stages[_MODEL][1]
    found = [seconds[mask & answered & ~np.isnan(seconds)] for mask in (stable, canary)]
    if min(map(len, found)) < LEAST_REQUESTS:
        return None
    return float(np.median(found[0])), float(np.median(found[1]))


def _flips(evidence: Evidence) -> tuple[float, float] | None:
    """Return flipped and compared answers; None when too few were compared."""
    rows = evidence.rows
    counts: dict[str, float] = {}
    if rows is not None and (column := rows.labels.get("request/canary_comparison")) is not None:
        words = column[rows.between(*_span(evidence))]
        counts = {word: float((words == word).sum()) for word in ("same", "flipped")}
    elif rows is None:
        for one in evidence.get(COMPARISONS) or ():
            word = one.labels.get("result", "")
            counts[word] = counts.get(word, 0.0) + float(signals.increase([one], *_span(evidence)) or 0.0)
    compared = counts.get("same", 0.0) + counts.get("flipped", 0.0)
    return (counts.get("flipped", 0.0), compared) if compared >= LEAST_COMPARISONS else None


def over_limit(evidence: Evidence) -> StepResult:
    """Return how many times the canary is over what is allowed, of time in the model or of flipped labels."""
    step, medians, flips = "canary.over_limit", _medians(evidence), _flips(evidence)
    if medians is None and flips is None:
        return StepResult(step, None, "ring", _QUERY, "no second version answered enough requests")
    value, told = 0.0, []
    if medians is not None:
        stable, canary = medians
        if canary - stable > SLOWER_SECONDS:
            value = canary / max(stable, 1e-9) / SLOWER
        told.append(f"median in the model: stable {stable * 1e3:.2f} ms, canary {canary * 1e3:.2f} ms")
    if flips is not None:
        value = max(value, flips[0] / flips[1] / FLIPPED)
        told.append(f"{flips[0]:.0f} of {flips[1]:.0f} compared answers have another label")
    return StepResult(step, value, "ring", _QUERY, "; ".join(told))


def flipped_share(evidence: Evidence) -> StepResult:
    """Return the share of compared answers to which the canary gave another label than the stable version."""
    flips, query = _flips(evidence), f"increase({COMPARISONS}[5m])"
    if flips is None:
        return StepResult("canary.flipped_share", None, "ring", query, "too few answers were compared")
    detail = f"{flips[0]:.0f} of {flips[1]:.0f} compared answers"
    return StepResult("canary.flipped_share", flips[0] / flips[1], "ring", query, detail)


def stable_steady(evidence: Evidence) -> StepResult:
    """Return the stable version's median time in the model, during the incident over before."""
    step, query, rows = (
        "canary.stable_steady",
        f"rows: {_MODEL} of the stable version, incident over before",
        evidence.rows,
    )
    roles = None if rows is None else rows.labels.get("request/version_role")
    if rows is None or roles is None or _MODEL not in rows.stages:
        return StepResult(step, None, "ring", query, "no second version is served")
    seconds, mine = rows.stages[_MODEL][1], np.asarray(roles != "canary")
    spans = (evidence.window.baseline, evidence.window.incident)
    before, now = (seconds[mine & rows.between(*span) & ~np.isnan(seconds)] for span in spans)
    if min(len(before), len(now)) < LEAST_REQUESTS:
        return StepResult(step, None, "ring", query, "too few requests of the stable version to compare")
    first, then = float(np.median(before)), float(np.median(now))
    detail = f"{first * 1e3:.2f} ms before, {then * 1e3:.2f} ms now"
    return StepResult(step, then / max(first, 1e-9), "ring", query, detail)


def _share_failed(evidence: Evidence, role: str) -> tuple[float, float, dict[str, float]] | None:
    """Return failed and asked requests of a version, and the failures by kind; None when too few were asked."""
    rows, kinds = evidence.rows, dict[str, float]()
    if rows is not None:
        mine = _asked(evidence, rows, role)
        if mine is None:
            return None
        total = float(mine.sum())
        if role == "canary":
            words = rows.labels.get("request/version_failed")
            failed = mine & _failed(rows)
            kinds = {} if words is None else {kind: float((words[failed] == kind).sum()) for kind in _FAILURES}
        else:
            reasons = rows.labels.get("reason")
            kinds = {} if reasons is None else {"error": float((reasons[mine] == "model_error").sum())}
    else:
        total = 0.0
        for one in evidence.get(VERSION_REQUESTS) or ():
            if one.labels.get("role") == role:
                grown = float(signals.increase([one], *_span(evidence)) or 0.0)
                total += grown
                if (kind := one.labels.get("result", "")) in _FAILURES:
                    kinds[kind] = kinds.get(kind, 0.0) + grown
    return (sum(kinds.values()), total, kinds) if total >= LEAST_REQUESTS else None


def _failed_result(evidence: Evidence, step: str, role: str) -> StepResult:
    query, found = f'increase({VERSION_REQUESTS}{{role="{role}"}}[5m])', _share_failed(evidence, role)
    source = "prometheus" if evidence.rows is None else "ring"
    if found is None:
        return StepResult(step, None, source, query, "no second version was asked enough")
    failed, total, kinds = found
    told = ", ".join(f"{kind} {count:.0f}" for kind, count in kinds.items() if count) or "none failed"
    return StepResult(step, failed / total, source, query, f"{failed:.0f} of {total:.0f} requests: {told}")


def failed_share(evidence: Evidence) -> StepResult:
    """Return the share of the canary's requests that the stable one had to answer, for an error, NaN or lateness."""
    return _failed_result(evidence, "canary.failed_share", "canary")


def stable_failed_share(evidence: Evidence) -> StepResult:
    """Return the same of the stable version, which nobody stands behind: what hits both is no fault of a version."""
    return _failed_result(evidence, "canary.stable_failed_share", "stable")


def rollbacks(evidence: Evidence) -> StepResult:
    """Return how often a canary was taken back in these minutes, by itself or by hand."""
    step, query, series = "canary.rollbacks", f"increase({ROLLBACKS}[5m])", evidence.get(ROLLBACKS)
    if series is None:
        return StepResult(step, None, "prometheus", query, "the service's own metrics are not there")
    begin, end = _span(evidence)
    by_reason = {one.labels.get("reason", ""): float(signals.increase([one], begin, end) or 0.0) for one in series}
    told = ", ".join(f"{reason} {count:.0f}" for reason, count in by_reason.items() if count) or "none"
    return StepResult(step, sum(by_reason.values()), "prometheus", query, told)
