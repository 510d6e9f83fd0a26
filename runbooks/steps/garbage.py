"""Does the garbage collector stop the service, for how long, and are those the requests that are slow?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import RingLife

__all__ = ["cpu_share", "full_pause", "long_pauses", "pause_ratio", "pause_share", "slow_overlap"]

_PAGES = "status pages: gc_long"
# Below this share a baseline is quiet, and ratios to it would only magnify noise.
QUIET_SHARE = 0.005
# The service keeps the last 32 (probes/gc_pauses.py): a full list says nothing of the time before its first.
KEPT_PAUSES = 32
LEAST_SECONDS = 10.0
LEAST_SLOW = 5


def _share(evidence: Evidence, since: float, until: float) -> float | None:
    """Return the share of the time that a worker stood still for the collector; None when it is not known."""
    series = evidence.get(signals.GC_PAUSE)
    if series is None or until - since < LEAST_SECONDS:
        return None
    workers = len([one for one in evidence.get(signals.WORKER_UP) or () if len(one.values) and one.values[-1] > 0])
    return signals.increase(series, since, until) / (until - since) / max(workers, 1)


def pause_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident that a worker stood still for the collector."""
    step, query = "garbage.pause_share", f"rate({signals.GC_PAUSE}[1m]) / sum({signals.WORKER_UP})"
    value = _share(evidence, *evidence.window.incident)
    detail = "not known here" if value is None else f"workers stood still for the collector in {value:.1%} of the time"
    return StepResult(step, value, "prometheus", query, detail)


def pause_ratio(evidence: Evidence) -> StepResult:
    """Return that share over the same service's before the onset."""
    step, query = "garbage.pause_ratio", f"{signals.GC_PAUSE} against the baseline"
    now, before = _share(evidence, *evidence.window.incident), _share(evidence, *evidence.window.baseline)
    if now is None or before is None:
        return StepResult(step, None, "prometheus", query, "no healthy time to compare with")
    value = now / max(before, QUIET_SHARE)
    return StepResult(step, value, "prometheus", query, f"{value:.1f} times the share before")


def full_pause(evidence: Evidence) -> StepResult:
    """Return the mean seconds of the incident's pauses of generation 2: they grow with what the process keeps."""
    step, query = "garbage.full_pause", f'{signals.GC_PAUSE}{{generation="2"}} over their number'
    window = evidence.window.incident
    seconds, number = (
        signals.increase(
            [one for one in evidence.get(name) or () if one.labels.get("generation") == "2"],
            *window,
        )
        for name in (signals.GC_PAUSE, signals.GC_COUNT)
    )
    if number < 1:
        return StepResult(step, None, "prometheus", query, "no full collection is known of")
    value = seconds / number
    return StepResult(step, value, "prometheus", query, f"{number:.0f} full collections of {value * 1000:.0f} ms each")


class Pause(NamedTuple):
    """One long pause: its start in unix seconds, and seconds."""

    start: float
    seconds: float
    cpu: float


def _told(evidence: Evidence) -> list[tuple[RingLife, list[Pause], float]]:
    """Return per ring its long pauses and since when the list is complete."""
    since, until = evidence.window.incident
    found = []
    for ring in evidence.rows.rings if evidence.rows is not None else ():
        told = ring.status.get("gc_long")
        if not isinstance(told, list) or ring.last_sign_s < since or ring.started_s > until:
            continue
        spans = [
            Pause(one["start_unix_ns"] / 1e9, one["duration_ns"] / 1e9, one.get("cpu_ns", 0) / 1e9)
            for one in told
            if isinstance(one, Mapping) and {"start_unix_ns", "duration_ns"} <= one.keys()
        ]
        known = max(since, min(one.start for one in spans)) if len(spans) >= KEPT_PAUSES else since
        if known < until:
            inside = [one for one in spans if one.start + one.seconds >= known and one.start < until]
            found.append((ring, inside, known))
    return found


def long_pauses(evidence: Evidence) -> StepResult:
    """Return how many pauses of 50 ms or more a minute the worst worker had in the incident, from its status page."""
    step, told = "garbage.long_pauses", _told(evidence)
    if not told:
        return StepResult(step, None, "ring", _PAGES, "no status page covers the incident")
    until = evidence.window.incident[1]
    value, count = max((len(spans) * 60.0 / max(until - known, 1.0), len(spans)) for _, spans, known in told)
    detail = f"{value:.0f} a minute of 50 ms or more ({count} are known)"
    return StepResult(step, value, "ring", _PAGES, detail)


def cpu_share(evidence: Evidence) -> StepResult:
    """Return the CPU seconds a second that the worst worker spent in long full collections in the incident.

    A process that gets no CPU has long pauses as well: what they compute tells whose fault it is.
    """
    step, query, told = "garbage.cpu_share", f"{_PAGES}[].cpu_ns", _told(evidence)
    if not told:
        return StepResult(step, None, "ring", query, "no status page covers the incident")
    until = evidence.window.incident[1]
    value = max(sum(one.cpu for one in spans) / max(until - known, 1.0) for _, spans, known in told)
    return StepResult(step, value, "ring", query, f"long collections computed for {value:.1%} of the time")


def slow_overlap(evidence: Evidence) -> StepResult:
    """Return the share of slow requests during which their own worker stood still for the collector."""
    step, query, rows = "garbage.slow_overlap", f"rows against {_PAGES}", evidence.rows
    hit = total = 0
    if rows is not None:
        slow = evidence.slow()
        for ring, spans, since in _told(evidence):
            mine = slow & (rows.ring == ring.ring) & rows.between(since, evidence.window.incident[1])
            mine &= rows.start_s >= since
            met = np.zeros(len(rows), dtype=bool)
            for one in spans:
                # What was held up rushes in right after and is slow too, as after a blocked loop.
                met |= (rows.start_s < one.start + 1.2 * one.seconds + 0.02) & (rows.end_s > one.start)
            total, hit = total + int(mine.sum()), hit + int((mine & met).sum())
    if total < LEAST_SLOW:
        return StepResult(step, None, "ring", query, "too few slow requests while long pauses are known")
    return StepResult(step, hit / total, "ring", query, f"{hit} of {total} slow requests met a long pause")
