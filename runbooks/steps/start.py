"""Did the service take long to be ready? Told by the phases on its status pages, and by what it says of itself."""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.lives import NOT_STARTING, STARTING, Start, start_of, starts
from runbooks.rows import Floats
from runbooks.targets import down_seconds

__all__ = [
    "counted_seconds",
    "process_lives",
    "ratio",
    "seconds",
    "slowest_phase",
    "still_answers",
    "warming_seconds",
]

# A start that was over so long before the onset is another story.
BEFORE_SECONDS = 30.0
# Scrapes further apart than this are no proof that nothing was between them.
MOST_GAP_SECONDS = 31.0
_PAGES = "status pages: phases"


def _span(evidence: Evidence) -> tuple[float, float]:
    return evidence.window.incident[0] - BEFORE_SECONDS, evidence.window.until


def _recent(evidence: Evidence) -> list[Start] | None:
    """Return the starts that reach into the incident, the oldest first; None when no worker tells of its start."""
    known = starts(evidence.rows) if evidence.rows is not None else []
    if not known:
        return None
    since, until = _span(evidence)
    return [
        one for one in known if (one.ended_s >= since or (not one.ready and one.ring.alive)) and one.began_s < until
    ]


def _slowest(evidence: Evidence) -> Start | None:
    return max(_recent(evidence) or (), key=lambda one: one.seconds, default=None)


def seconds(evidence: Evidence) -> StepResult:
    """Return how long the slowest start of the incident took, or has taken so far; 0 when no worker started."""
    step, slowest = "start.seconds", _slowest(evidence)
    if _recent(evidence) is None:
        return StepResult(step, None, "ring", _PAGES, "no worker tells of its start")
    if slowest is None:
        return StepResult(step, 0.0, "ring", _PAGES, "no worker started in this time")
    state = "to be ready" if slowest.ready else "so far, and is not ready"
    return StepResult(step, slowest.seconds, "ring", _PAGES, f"the slowest start took {slowest.seconds:.1f} s {state}")


def slowest_phase(evidence: Evidence) -> StepResult:
    """Return the phase in which the slowest start spent most of its time."""
    step, slowest = "start.slowest_phase", _slowest(evidence)
    if slowest is None:
        return StepResult(step, None, "ring", _PAGES, "no start to look at")
    detail = f"{slowest.phase_seconds:.1f} s of {slowest.seconds:.1f} s in {slowest.phase}"
    return StepResult(step, slowest.phase, "ring", _PAGES, detail)


def ratio(evidence: Evidence) -> StepResult:
    """Return how long the slowest start took over the median of this service's starts before it."""
    step, slowest = "start.ratio", _slowest(evidence)
    earlier = []
    if slowest is not None and evidence.rows is not None:
        # Imports included: an import that is overstated (runbooks/lives.py) makes the ratio smaller, never larger.
        known = (start_of(ring) for ring in evidence.rows.rings)
        earlier = [one.seconds for one in known if one and one.ready and one.ring.started_s < slowest.began_s]
    if slowest is None or not earlier:
        return StepResult(step, None, "ring", _PAGES, "no earlier start to compare with")
    usual = float(np.median(earlier))
    return StepResult(step, slowest.seconds / max(usual, 0.1), "ring", _PAGES, f"{usual:.1f} s is usual here")


def counted_seconds(evidence: Evidence) -> StepResult:
    """Return the longest sum of the phases of a start that the exporter showed; 0 when none changed in the incident.

    The gauge stands still once a worker is ready, so that only phases that changed are of this incident.
    """
    step, query = "start.counted_seconds", f"sum({signals.START_PHASE})"
    known = [one for one in evidence.get(signals.START_PHASE) or () if one.labels.get("phase") not in NOT_STARTING]
    if not known:
        return StepResult(step, None, "prometheus", query, "no phases known")
    since, until = _span(evidence)
    total: dict[float, float] = {}
    for one in known:
        first = min((float(moment) for moment in _changes(one) if since <= moment <= until), default=np.inf)
        for moment, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            if first <= moment <= until:
                total[moment] = total.get(moment, 0.0) + value
    if not total:
        return StepResult(step, 0.0, "prometheus", query, "no start in this time")
    longest = max(total.values())
    return StepResult(step, longest, "prometheus", query, f"the phases of the start add up to {longest:.1f} s")


def _changes(series: Series) -> Floats:
    """Return the times at which a series had another value than at the sample before, shape (n,)."""
    return np.asarray(series.times[1:][np.diff(series.values) != 0.0])


def warming_seconds(evidence: Evidence) -> StepResult:
    """Return for how long without a break the service answered that it is not ready yet."""
    step, query = "start.warming_seconds", f'{signals.PHASE}{{phase=~"{"|".join(STARTING)}"}} == 1'
    known = evidence.get(signals.PHASE)
    if not known:
        return StepResult(step, None, "prometheus", query, "no phase known")
    since, until = _span(evidence)
    warming: dict[float, bool] = {}
    for one in known:
        for moment, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            if since <= moment <= until:
                warming[moment] = warming.get(moment, False) or (value > 0 and one.labels.get("phase") in STARTING)
    longest, begin, last = 0.0, None, None
    for moment in sorted(warming):
        if last is None or moment - last > MOST_GAP_SECONDS or not warming[moment]:
            begin = None
        if warming[moment]:
            begin = moment if begin is None else begin
            longest = max(longest, moment - begin)
        last = moment
    return StepResult(step, longest, "prometheus", query, f"said that it is warming up for {longest:.0f} s")


def process_lives(evidence: Evidence) -> StepResult:
    """Return whether the worker that started last still gives signs of life at the end: late, not dead."""
    step, known = "start.process_lives", _recent(evidence)
    if not known:
        return StepResult(step, None, "ring", _PAGES, "no start to look at")
    silent = max(evidence.window.until - known[-1].ring.last_sign_s, 0.0)
    return StepResult(step, silent < 5.0, "ring", _PAGES, f"last sign of life {silent:.0f} s before the end")


def still_answers(evidence: Evidence) -> StepResult:
    """Return whether the service's own target answers at the end, after a start that Prometheus saw."""
    step, query = "start.still_answers", f'up{{job="{signals.SERVICE_JOB}"}}'
    if not counted_seconds(evidence).value and not warming_seconds(evidence).value:
        # It answers all the time: without a start that is no sign of anything.
        return StepResult(step, None, "prometheus", query, "no start to look at")
    up = evidence.get(signals.UP)
    down = None if up is None else down_seconds(up, signals.SERVICE_JOB, evidence.window.incident[1])
    value = None if down is None else down == 0.0
    detail = {None: "no such target known", True: "answers", False: "does not answer"}[value]
    return StepResult(step, value, "prometheus", query, detail)
