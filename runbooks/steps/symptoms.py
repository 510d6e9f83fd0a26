"""What users feel and what comes near a bound: the facts of the symptoms' pages, which no failure claims for itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import OUTCOMES, Floats

__all__ = [
    "beat_age",
    "descriptors_used",
    "disconnected_share",
    "dispatch_wait",
    "failed_scrapes",
    "failed_share",
    "memory_ratio",
    "oldest_request",
    "requests_rate",
    "rows_lost",
]

DISPATCH = "scheduler.dispatch"


def _outcome_share(evidence: Evidence, outcome: str, said: str) -> StepResult:
    """Return the share of the incident's accepted requests that ended so, from rows, else from the counter."""
    step, since, until = f"symptoms.{said}_share", *evidence.window.incident
    rows = evidence.rows
    if rows is not None and len(rows):
        inside = rows.between(since, until) & (rows.outcome != OUTCOMES.index("refused"))
        part, whole = float((inside & (rows.outcome == OUTCOMES.index(outcome))).sum()), float(inside.sum())
        source = "ring"
    else:
        series = evidence.get(signals.REQUESTS) or ()
        part = signals.increase([one for one in series if one.labels.get("outcome") == outcome], since, until)
        whole = signals.increase([one for one in series if one.labels.get("outcome") != "refused"], since, until)
        source = "prometheus"
    query = f'{signals.REQUESTS}{{outcome="{outcome}"}} over all but the refused'
    if not whole:
        return StepResult(step, None, source, query, "no accepted request in the incident")
    return StepResult(step, part / whole, source, query, f"{part:.0f} of {whole:.0f} accepted requests")


def failed_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's accepted requests that ended in an error."""
    return _outcome_share(evidence, "error", "failed")


def disconnected_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's accepted requests whose caller left before the answer."""
    return _outcome_share(evidence, "disconnected", "disconnected")


def dispatch_wait(evidence: Evidence) -> StepResult:
    """Return the mean seconds that a request of the incident waited in dispatch, beside the work in it."""
    step, query, rows = "symptoms.dispatch_wait", f"rows: {DISPATCH} without the stages in it", evidence.rows
    if rows is None or DISPATCH not in rows.stages:
        return StepResult(step, None, "ring", query, "no such stage known")
    ran = rows.between(*evidence.window.incident) & ~np.isnan(rows.stages[DISPATCH][1])
    if not ran.any():
        return StepResult(step, None, "ring", query, "no request reached it in the incident")
    waited, whole = rows.self_times()[DISPATCH][ran], rows.stages[DISPATCH][1][ran]
    share = float(waited.sum() / max(float(whole.sum()), 1e-9))
    value = float(waited.mean())
    return StepResult(step, value, "ring", query, f"{value * 1000:.1f} ms on average, {share:.0%} of the time there")


def oldest_request(evidence: Evidence) -> StepResult:
    """Return the age in seconds of the oldest request in flight at the end, with the stage that it is in."""
    step, until, rows = "symptoms.oldest_request", evidence.window.incident[1], evidence.rows
    if rows is None:
        value = _last(evidence, signals.OLDEST, until)
        detail = "not known" if value is None else f"{value:.0f} s"
        return StepResult(step, value, "prometheus", signals.OLDEST, detail)
    going = [one for one in rows.open if one.alive and one.start_s <= until]
    if not going:
        return StepResult(step, 0.0, "ring", "ring files: open slots", "none in flight")
    oldest = min(going, key=lambda one: one.start_s)
    value = until - oldest.start_s
    return StepResult(
        step, value, "ring", "ring files: open slots", f"{value:.0f} s, in {oldest.stage or 'no stage yet'}"
    )


def beat_age(evidence: Evidence) -> StepResult:
    """Return for how many seconds the most silent living worker had given no sign of life at the end."""
    step, until, rows = "symptoms.beat_age", evidence.window.incident[1], evidence.rows
    if rows is not None and (living := [ring for ring in rows.rings if ring.alive]):
        worst = min(living, key=lambda ring: ring.last_sign_s)
        value = max(0.0, until - worst.last_sign_s)
        said = f"worker {worst.worker} silent for {value:.0f} s, its process still holds its file"
        return StepResult(step, value, "ring", "ring files: last sign, owner's lock", said)
    value_or_none = _last(evidence, signals.HEARTBEAT, until, {"source": "thread"})
    detail = "no living worker known" if value_or_none is None else f"{value_or_none:.0f} s"
    return StepResult(step, value_or_none, "prometheus", f'{signals.HEARTBEAT}{{source="thread"}}', detail)


def descriptors_used(evidence: Evidence) -> StepResult:
    """Return the share of its file descriptors that the living worker nearest to its limit holds."""
    step, query = "symptoms.descriptors_used", "ring files: status pages, fds over fd_limit"
    shares = []
    for ring in evidence.rows.rings if evidence.rows is not None else ():
        used, limit = ring.status.get("fds"), ring.status.get("fd_limit")
        if ring.alive and isinstance(used, int | float) and isinstance(limit, int | float) and limit:
            shares.append((used / limit, f"worker {ring.worker}: {used:.0f} of {limit:.0f}"))
    if not shares:
        return StepResult(step, None, "ring", query, "no living worker tells")
    value, detail = max(shares)
    return StepResult(step, value, "ring", query, detail)


def memory_ratio(evidence: Evidence) -> StepResult:
    """Return the workers' resident memory at the end over that at the begin of what was looked at."""
    step, query = "symptoms.memory_ratio", signals.RESIDENT
    series = evidence.get(query) or ()
    if not series:
        return StepResult(step, None, "prometheus", query, "not known")
    first, last = (sum(float(one.values[at]) for one in series) for at in (0, -1))
    if first <= 0:
        return StepResult(step, None, "prometheus", query, "not known from before")
    return StepResult(
        step, last / first, "prometheus", query, f"{first / 2**20:.0f} MiB before, {last / 2**20:.0f} MiB now"
    )


def requests_rate(evidence: Evidence) -> StepResult:
    """Return how many requests a second ended in the incident, the refused ones among them."""
    step, (since, until), rows = "symptoms.requests_rate", evidence.window.incident, evidence.rows
    if rows is not None:
        count, source = float(rows.between(since, until).sum()), "ring"
    elif series := evidence.get(signals.REQUESTS):
        count, source = signals.increase(series, since, until), "prometheus"
    else:
        return StepResult(step, None, "none", signals.REQUESTS, "neither rows nor counters known")
    value = count / max(until - since, 1.0)
    return StepResult(step, value, source, signals.REQUESTS, f"{count:.0f} requests in {until - since:.0f} s")


def rows_lost(evidence: Evidence) -> StepResult:
    """Return how many rows the exporter counted as lost in the time looked at."""
    step, series = "symptoms.rows_lost", evidence.get(signals.LOST)
    if series is None:
        return StepResult(step, None, "prometheus", signals.LOST, "not counted here")
    grown = {
        str(one.labels.get("reason")): signals.increase([one], evidence.window.since, evidence.window.until)
        for one in series
    }
    said = ", ".join(f"{count:.0f} {reason}" for reason, count in grown.items() if count)
    return StepResult(step, sum(grown.values()), "prometheus", signals.LOST, said or "none")


def failed_scrapes(evidence: Evidence) -> StepResult:
    """Return the largest share of failed scrapes of a target in the time looked at."""
    step, shares = "symptoms.failed_scrapes", []
    for one in evidence.get(signals.UP) or ():
        values: Floats = one.values
        shares.append((float((values == 0).mean()), f"{one.labels.get('job')} at {one.labels.get('instance')}"))
    if not shares:
        return StepResult(step, None, "prometheus", signals.UP, "no target known")
    value, who = max(shares)
    return StepResult(
        step, value, "prometheus", signals.UP, f"{value:.0%} of the scrapes of {who}" if value else "none"
    )


def _last(evidence: Evidence, query: str, until: float, labels: Mapping[str, str] | None = None) -> float | None:
    """Return the largest last value of a gauge's series up to a time; None when there is none."""
    values = [
        float(one.values[one.times <= until][-1])
        for one in evidence.get(query) or ()
        if (one.times <= until).any() and all(one.labels.get(name) == value for name, value in (labels or {}).items())
    ]
    return max(values, default=None)
