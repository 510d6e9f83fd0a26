"""Is memory taken twice, or is there too little for a batch? By the service's sessions, its refusals and its device."""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.memory_queries import DUPLICATE_SESSIONS, FREE_MEMORY, MEMORY_SHORT, OPEN_SESSIONS

__all__ = ["duplicate_sessions", "free_ratio", "more_sessions", "resident_step_bytes", "short_requests", "short_share"]

# Since requests wait a quarter of their deadline for memory, a first refusal is seen at the onset or just before.
_LEAD_SECONDS = 10.0
# Something that stays and makes nobody slow starts no incident: what is so now counts beside what was so in one.
_NOW_SECONDS = 30.0


def _values(series: tuple[Series, ...] | None, span: tuple[float, float]) -> list[float]:
    found: list[float] = []
    for one in series or ():
        found += one.values[(one.times >= span[0]) & (one.times <= span[1])].tolist()
    return found


def _spans(evidence: Evidence) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the incident's later half, and the last half minute that is looked at."""
    begin, end = evidence.window.incident
    until = evidence.window.until
    return ((begin + end) / 2, end), (until - _NOW_SECONDS, until)


def duplicate_sessions(evidence: Evidence) -> StepResult:
    """Return how many sessions beyond the first of a model a worker held late in the incident, or holds now."""
    step, query = "device_memory.duplicate_sessions", DUPLICATE_SESSIONS
    found = [np.median(values) for span in _spans(evidence) if (values := _values(evidence.get(query), span))]
    if not found:
        return StepResult(step, None, "prometheus", query, "no service tells of its sessions")
    value = float(max(found))
    return StepResult(step, value, "prometheus", query, f"{value:.0f} beyond the first of each model")


def more_sessions(evidence: Evidence) -> StepResult:
    """Return how many sessions a worker holds more than the fewest (but some) that it was seen with."""
    step, query = "device_memory.more_sessions", OPEN_SESSIONS
    now = [np.median(values) for span in _spans(evidence) if (values := _values(evidence.get(query), span))]
    known = [one for one in _values(evidence.get(query), (evidence.window.since, evidence.window.until)) if one > 0]
    if not now or not known:
        return StepResult(step, None, "prometheus", query, "no service tells of its sessions")
    value = float(max(now) - min(known))
    detail = f"{min(known):.0f} before, {max(now):.0f} now"
    return StepResult(step, value, "prometheus", query, detail)


def resident_step_bytes(evidence: Evidence) -> StepResult:
    """Return by how much the workers' memory is above that before the incident."""
    step, query = "device_memory.resident_step_bytes", signals.RESIDENT
    now = _values(evidence.get(query), evidence.window.incident)
    before = _values(evidence.get(query), evidence.window.baseline)
    if not now or not before:
        return StepResult(step, None, "prometheus", query, "no healthy time of the workers' memory to compare with")
    value = float(np.max(now) - np.median(before))
    detail = f"{np.median(before) / 2**20:.0f} MiB before, {np.max(now) / 2**20:.0f} MiB now"
    return StepResult(step, value, "prometheus", query, detail)


def short_requests(evidence: Evidence) -> StepResult:
    """Return how many requests of the incident found no memory on the model's device."""
    step, query = "device_memory.short_requests", f"increase({MEMORY_SHORT}[1m])"
    found = evidence.get(MEMORY_SHORT)
    if not found:
        return StepResult(step, None, "prometheus", query, "no exporter tells of it")
    begin, end = evidence.window.incident
    value = float(signals.increase(found, begin - _LEAD_SECONDS, end) or 0.0)
    return StepResult(step, value, "prometheus", query, f"{value:.0f} requests were told that there is no memory")


def short_share(evidence: Evidence) -> StepResult:
    """Return which share of the requests that failed in the incident failed for want of memory."""
    step, query = "device_memory.short_share", f'{MEMORY_SHORT} of {signals.REQUESTS}{{outcome="error"}}'
    begin, end = evidence.window.incident
    failed = signals.increase(
        [one for one in evidence.get(signals.REQUESTS) or () if one.labels.get("outcome") == "error"],
        begin - _LEAD_SECONDS,
        end,
    )
    short = evidence.get(MEMORY_SHORT)
    if not failed or short is None:
        return StepResult(step, None, "prometheus", query, "no request failed")
    value = min(1.0, float(signals.increase(short, begin - _LEAD_SECONDS, end) or 0.0) / failed)
    return StepResult(step, value, "prometheus", query, f"{value:.0%} of {failed:.0f} requests that failed")


def free_ratio(evidence: Evidence) -> StepResult:
    """Return the device's least free memory of the incident over that before; under 1 somebody took it."""
    step, query = "device_memory.free_ratio", FREE_MEMORY
    now = _values(evidence.get(query), evidence.window.incident)
    before = _values(evidence.get(query), evidence.window.baseline)
    if not now or not before or np.median(before) <= 0:
        return StepResult(step, None, "prometheus", query, "no device is looked at, or nothing to compare with")
    value = float(np.min(now) / np.median(before))
    detail = f"{np.median(before) / 2**20:.0f} MiB free before, {np.min(now) / 2**20:.0f} MiB at least now"
    return StepResult(step, value, "prometheus", query, detail)
