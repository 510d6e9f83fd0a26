"""Is there no room to write: how much is left, what could not be written for it, and do the requests mind?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from runbooks import signals
from runbooks.disk_room import room_left
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.rows import OUTCOMES

__all__ = ["failed_writes", "for_lack_of_room", "hurt_share", "room", "unrecorded"]

FULL: Final = "disk_full"
FAILED: Final = tuple(OUTCOMES.index(name) for name in ("error", "degraded", "disconnected"))
# A gauge that was last seen longer ago than this says nothing of the end.
STALE_SECONDS: Final = 30.0
LEAST_REQUESTS: Final = 20


def room(evidence: Evidence) -> StepResult:
    """Return the room left at the end on the fullest disk, over the least that is healthy; below 1 there is none."""
    until = evidence.window.incident[1]
    found: list[tuple[float, str]] = []
    for folder, times, left in room_left(evidence):
        before = times <= until
        if before.any() and times[before][-1] >= until - STALE_SECONDS:
            found.append((float(left[before][-1]), folder))
    step, query = "disk.room", f"{signals.DISK_RATIO}, {signals.DISK_BYTES}"
    if not found:
        return StepResult(step, None, "prometheus", query, "free space is not known")
    least, folder = min(found)
    return StepResult(step, least, "prometheus", query, f"{folder}: {least:.2f} times the least that is healthy")


def failed_writes(evidence: Evidence) -> StepResult:
    """Return how many writes of state and archive failed a minute because nothing more fitted on the disk."""
    query = f'increase({signals.STATE_ERRORS}{{reason="{FULL}"}}[1m])'
    known = _of(evidence, (signals.STATE_ERRORS, signals.ARCHIVE_ERRORS))
    if known is None:
        return StepResult("disk.failed_writes", None, "prometheus", query, "not known whether writes failed")
    value = _per_minute(evidence, (one for one in known if one.labels.get("reason") == FULL))
    return StepResult("disk.failed_writes", value, "prometheus", query, f"{value:.0f} a minute for lack of room")


def unrecorded(evidence: Evidence) -> StepResult:
    """Return how many requests a minute were not recorded because their worker found no room for its rows."""
    query = f'increase({signals.UNRECORDED}{{reason="{FULL}"}}[1m])'
    series = evidence.get(signals.UNRECORDED)
    if series is None:
        return StepResult("disk.unrecorded", None, "prometheus", query, "not known what was not recorded")
    full = [one for one in series if one.labels.get("reason") == FULL]
    # The service says it of the worker that answers, the exporter of those that it can read: never the same request.
    value = _per_minute(evidence, full)
    return StepResult("disk.unrecorded", value, "prometheus", query, f"{value:.0f} requests a minute")


def for_lack_of_room(evidence: Evidence) -> StepResult:
    """Return which share of the failed writes failed for lack of room, and not because the folder refuses them."""
    step, query = "disk.for_lack_of_room", f"sum by (reason) (increase({signals.STATE_ERRORS}[1m]))"
    known = _of(evidence, (signals.STATE_ERRORS, signals.ARCHIVE_ERRORS)) or []
    every = _per_minute(evidence, known)
    if not every:
        return StepResult(step, None, "prometheus", query, "no write failed")
    value = _per_minute(evidence, (one for one in known if one.labels.get("reason") == FULL)) / every
    return StepResult(step, value, "prometheus", query, f"{value:.0%} of the failed writes failed for lack of room")


def hurt_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's requests that failed or were slow; the counters tell where no row does."""
    since, until = evidence.window.incident
    rows = evidence.rows
    inside = None if rows is None else rows.between(since, until)
    if rows is not None and inside is not None and inside.sum() >= LEAST_REQUESTS:
        hurt = inside & (evidence.slow() | np.isin(rows.outcome, FAILED))
        value = float(hurt.sum() / inside.sum())
        return StepResult(
            "disk.hurt_share", value, "ring", "rows: outcome, duration", f"{value:.1%} failed or were slow"
        )
    series = evidence.get(signals.REQUESTS) or ()
    total = signals.increase(series, since, until)
    if total < LEAST_REQUESTS:
        return StepResult("disk.hurt_share", None, "prometheus", signals.REQUESTS, "too few requests are recorded")
    words = {OUTCOMES[place] for place in FAILED}
    failed = signals.increase((one for one in series if one.labels.get("outcome") in words), since, until)
    return StepResult(
        "disk.hurt_share",
        failed / total,
        "prometheus",
        signals.REQUESTS,
        f"{failed / total:.1%} of the requests failed",
    )


def _of(evidence: Evidence, queries: Iterable[str]) -> list[Series] | None:
    """Return the series of several queries together; None when none of them is known."""
    found = [one for query in queries for one in evidence.get(query) or ()]
    return found or None


def _per_minute(evidence: Evidence, series: Iterable[Series] | Iterator[Series]) -> float:
    since, until = evidence.window.incident
    # What began a moment ago is not spread over less than a quarter of a minute.
    return signals.increase(series, since, until) * 60.0 / max(until - since, 15.0)
