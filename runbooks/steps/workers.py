"""Did a worker die while others went on? Told by the workers' files, by counters, and by what is served meanwhile."""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.lives import died, lived_through
from runbooks.rows import RingLife

__all__ = ["deaths_counted", "died_without_a_word", "fewest_up", "others_went_on", "replaced"]

# The death of one worker of several is over in seconds; so long before the onset it still is the same event.
BEFORE_SECONDS = 30.0
_FILES = "ring files: owner's lock, last status page"


def _span(evidence: Evidence) -> tuple[float, float]:
    return evidence.window.incident[0] - BEFORE_SECONDS, evidence.window.until


def _deaths(evidence: Evidence) -> list[RingLife] | None:
    """Return the workers that died in the incident; None when no worker's status page is known."""
    rows = evidence.rows
    if rows is None or not any(ring.status for ring in rows.rings):
        return None
    return died(rows, *_span(evidence))


def died_without_a_word(evidence: Evidence) -> StepResult:
    """Return how many workers let go of their files without having said that they stop."""
    step, found = "workers.died_without_a_word", _deaths(evidence)
    if found is None:
        return StepResult(step, None, "ring", _FILES, "no worker's status page known")
    until = evidence.window.until
    who = ", ".join(f"worker {ring.worker} {until - ring.last_sign_s:.0f} s before the end" for ring in found[:4])
    return StepResult(step, float(len(found)), "ring", _FILES, f"last sign of life: {who}" if found else "none died")


def deaths_counted(evidence: Evidence) -> StepResult:
    """Return how many deaths of workers the exporter counted in the incident."""
    step, query = "workers.deaths_counted", f'increase({signals.WORKER_ENDS}{{how="died"}}[2m])'
    known = [one for one in evidence.get(signals.WORKER_ENDS) or () if one.labels.get("how") == "died"]
    if not known:
        return StepResult(step, None, "prometheus", query, "not counted here")
    value = signals.increase(known, *_span(evidence))
    return StepResult(step, value, "prometheus", query, f"{value:.0f} workers died without a last word")


def others_went_on(evidence: Evidence) -> StepResult:
    """Return how many workers were there before a death and still are after it; the largest number over the deaths.

    The largest: when workers die one after the other, one may die while the heir of another has only just begun.
    """
    step, found = "workers.others_went_on", _deaths(evidence)
    if not found or evidence.rows is None:
        return StepResult(step, None, "ring", _FILES, "no death to look at")
    counts = [len(lived_through(evidence.rows, ring.last_sign_s)) for ring in found]
    return StepResult(step, float(max(counts)), "ring", _FILES, f"{max(counts)} other workers lived through it")


def fewest_up(evidence: Evidence) -> StepResult:
    """Return the smallest number of workers that were up at any scrape of the incident."""
    step, query = "workers.fewest_up", f"min_over_time(sum({signals.WORKER_UP})[2m:])"
    if not evidence.get(signals.WORKER_ENDS):
        # Workers are up all the time: without a count of deaths that is no sign of anything.
        return StepResult(step, None, "prometheus", query, "deaths are not counted here")
    since, until = _span(evidence)
    up: dict[float, float] = {}
    for one in evidence.get(signals.WORKER_UP) or ():
        for moment, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            if since <= moment <= until:
                up[moment] = up.get(moment, 0.0) + value
    if not up:
        return StepResult(step, None, "prometheus", query, "not known here")
    value = float(np.min(list(up.values())))
    return StepResult(step, value, "prometheus", query, f"at least {value:.0f} workers were up at every scrape")


def replaced(evidence: Evidence) -> StepResult:
    """Return how many workers started after the first death: another process took the dead one's place."""
    step, found = "workers.replaced", _deaths(evidence)
    if not found or evidence.rows is None:
        return StepResult(step, None, "ring", _FILES, "no death to look at")
    first = min(ring.last_sign_s for ring in found)
    new = [ring for ring in evidence.rows.rings if first < ring.started_s <= evidence.window.until]
    return StepResult(step, float(len(new)), "ring", _FILES, f"{len(new)} workers started since")
