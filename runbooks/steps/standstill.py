"""Do requests stay for ever, and what do the threads that stand still meanwhile wait for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.lives import stuck
from runbooks.rows import Episode, OpenRequest

__all__ = [
    "calls_standing",
    "ended_share",
    "lock_places",
    "locks_standing",
    "one_stage",
    "stuck_requests",
    "tasks_at_locks",
]

_OPEN: Final = "ring files: open slots"
_PAGES: Final = "status pages: standing"


def _stuck(evidence: Evidence) -> list[OpenRequest] | None:
    return None if evidence.rows is None else stuck(evidence.rows, evidence.window.until)


def stuck_requests(evidence: Evidence) -> StepResult:
    """Return how many requests had been in flight for 10 s or longer at the end."""
    step, found = "standstill.stuck_requests", _stuck(evidence)
    if found is None:
        return StepResult(step, None, "ring", _OPEN, "no rows")
    return StepResult(step, float(len(found)), "ring", _OPEN, f"{len(found)} have been in work for 10 s or longer")


def one_stage(evidence: Evidence) -> StepResult:
    """Return the share of those requests that are in the stage in which most of them are."""
    step, found = "standstill.one_stage", _stuck(evidence)
    if not found:
        return StepResult(step, None, "ring", _OPEN, "no request stays")
    name, count = Counter(one.stage for one in found).most_common(1)[0]
    detail = f"{count} of {len(found)} are in {name or 'no stage yet'}"
    return StepResult(step, count / len(found), "ring", _OPEN, detail)


def ended_share(evidence: Evidence) -> StepResult:
    """Return how many requests end per second now, over how many did before the onset."""
    step, query, rows = "standstill.ended_share", "rows: ends a second against the baseline", evidence.rows
    (since, until), (begin, end) = evidence.window.incident, evidence.window.baseline
    before = 0 if rows is None else int(rows.between(begin, end).sum())
    if rows is None or before < 20 or end - begin < 10.0 or until - since < 5.0:
        return StepResult(step, None, "ring", query, "no healthy time to compare with")
    # The onset itself still ends some: the last half is what it has come to.
    middle = (since + until) / 2
    value = float(rows.between(middle, until).sum()) / (until - middle) / (before / (end - begin))
    return StepResult(step, value, "ring", query, f"{value:.0%} of the usual number of requests end")


def _places(evidence: Evidence, waits: str) -> list[tuple[str, int]] | None:
    """Return where threads of the worst worker stand, waiting for that, and how many; None when no page tells."""
    told = []
    until = evidence.window.until
    for ring in evidence.rows.rings if evidence.rows is not None else ():
        standing = ring.status.get("standing")
        if not isinstance(standing, Mapping) or ring.started_s > until:
            continue
        places = [
            (Episode(0.0, 0.0, tuple(str(line) for line in one["stack"])).frame, int(one["threads"]))
            for one in standing.get("places") or ()
            if isinstance(one, Mapping) and one.get("waits") == waits and one.get("stack")
        ]
        told.append(places)
    return max(told, key=lambda places: sum(count for _, count in places), default=None)


def lock_places(evidence: Evidence) -> StepResult:
    """Return at how many different places of one worker threads wait for a lock and do not move."""
    step, places = "standstill.lock_places", _places(evidence, "lock")
    if places is None:
        return StepResult(step, None, "ring", _PAGES, "no status page tells of its threads")
    detail = "; ".join(f"{count} at {place}" for place, count in places) or "none waits for a lock"
    return StepResult(step, float(len({place for place, _ in places})), "ring", _PAGES, detail)


def calls_standing(evidence: Evidence) -> StepResult:
    """Return how many threads of one worker stand still in a call: whoever holds the locks may be one of them."""
    step, places = "standstill.calls_standing", _places(evidence, "call")
    if places is None:
        return StepResult(step, None, "ring", _PAGES, "no status page tells of its threads")
    detail = "; ".join(f"{count} at {place}" for place, count in places) or "none stands in a call"
    return StepResult(step, float(sum(count for _, count in places)), "ring", _PAGES, detail)


def locks_standing(evidence: Evidence) -> StepResult:
    """Return the most threads that stood still waiting for a lock at any scrape of the incident."""
    step, query = "standstill.locks_standing", f'{signals.STANDING}{{waits="lock"}}'
    since, until = evidence.window.incident[0], evidence.window.until
    known = [one for one in evidence.get(signals.STANDING) or () if one.labels.get("waits") == "lock"]
    values = [
        float(np.max(one.values[mask])) for one in known if (mask := (one.times >= since) & (one.times <= until)).any()
    ]
    if not values:
        return StepResult(step, None, "prometheus", query, "not known here")
    return StepResult(step, max(values), "prometheus", query, f"up to {max(values):.0f} threads")


def tasks_at_locks(evidence: Evidence) -> StepResult:
    """Return how many coroutines of one worker await a lock of asyncio that nobody has got for 5 s."""
    step, query, until = "standstill.tasks_at_locks", "status pages: standing_tasks", evidence.window.until
    rings = evidence.rows.rings if evidence.rows is not None else ()
    parts = [ring.status.get("standing_tasks") for ring in rings if ring.started_s <= until]
    told = [part for part in parts if isinstance(part, Mapping)]
    worst = max(told, key=lambda one: int(one.get("lock") or 0), default=None)
    if worst is None:
        return StepResult(step, None, "ring", query, "no status page tells of its tasks")
    places = [
        f"{one['tasks']} at {Episode(0.0, 0.0, tuple(str(line) for line in one['stack'])).frame}"
        for one in worst.get("places") or ()
        if isinstance(one, Mapping) and one.get("waits") == "lock" and one.get("stack")
    ]
    value = float(worst.get("lock") or 0)
    return StepResult(step, value, "ring", query, "; ".join(places) or "none awaits a lock for so long")
