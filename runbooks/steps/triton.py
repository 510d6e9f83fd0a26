"""What is wrong with the Triton behind the service: by its target, its supervisor's canary, the service's calls.

The four look alike from the service (the model in process answers): nothing listens, an open socket that never answers,
a process inside that has died, a model that was taken out. A call that is only late is told apart by where it was: in
the client before it was sent, on the way, or in Triton.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.targets import down_seconds
from runbooks.triton_queries import (
    CANARY,
    CONNECTION_COUNT,
    CONNECTION_SUM,
    FALLBACK,
    HEALS,
    SERVED,
    SERVED_TIME,
    TRITON_JOB,
)

__all__ = [
    "canary_stub_dead_share",
    "canary_timeout_share",
    "canary_unloaded_share",
    "connection_wait_calls",
    "connection_wait_seconds",
    "failed_calls_refused_share",
    "failed_calls_timeout_share",
    "failed_calls_unloaded_share",
    "heals",
    "outside_seconds",
    "own_time_ratio",
    "target_down",
]

# The last half minute of the incident: a state that has gone since is not what is wrong now.
LAST_SECONDS: Final = 30.0


def target_down(evidence: Evidence) -> StepResult:
    """Return for how many seconds Triton's own metrics had not answered Prometheus at the end of the incident."""
    up = evidence.get(signals.UP)
    value = None if up is None else down_seconds(up, TRITON_JOB, evidence.window.incident[1])
    detail = "no Triton is scraped" if value is None else ("answers" if not value else f"no answer for {value:.0f} s")
    return StepResult("triton.target_down", value, "prometheus", f'up{{job="{TRITON_JOB}"}}', detail)


def _canary_share(evidence: Evidence, state: str) -> StepResult:
    """Return the share of the incident's last half minute in which the canary came to a state."""
    step, query = f"triton.canary_{state}_share", f'{CANARY}{{state="{state}"}}'
    end = evidence.window.incident[1]
    begin = max(evidence.window.incident[0], end - LAST_SECONDS)
    for series in evidence.get(CANARY) or ():
        if series.labels.get("state") == state:
            inside = (series.times >= begin) & (series.times <= end)
            if inside.any():
                share = float(np.mean(series.values[inside] > 0))
                return StepResult(step, share, "prometheus", query, f"{state} in {share:.0%} of the looks")
    return StepResult(step, None, "prometheus", query, "no supervisor of a Triton told of its canary")


def canary_timeout_share(evidence: Evidence) -> StepResult:
    """Return in which share of the last looks the canary had no answer although the socket was open."""
    return _canary_share(evidence, "timeout")


def canary_stub_dead_share(evidence: Evidence) -> StepResult:
    """Return in which share of the last looks the process that runs the model was dead."""
    return _canary_share(evidence, "stub_dead")


def canary_unloaded_share(evidence: Evidence) -> StepResult:
    """Return in which share of the last looks the model was not loaded."""
    return _canary_share(evidence, "unloaded")


def heals(evidence: Evidence) -> StepResult:
    """Return how often a dead stub's model was unloaded and loaded in the two minutes before the incident's end."""
    step, query = "triton.heals", f"increase({HEALS}[2m])"
    found = evidence.get(HEALS)
    if not found:
        return StepResult(step, None, "prometheus", query, "no supervisor of a Triton told of it")
    end = evidence.window.incident[1]
    value = float(signals.increase(found, end - 120.0, end) or 0.0)
    return StepResult(step, value, "prometheus", query, f"{value:.0f} in two minutes")


def _failed_share(evidence: Evidence, reason: str) -> StepResult:
    """Return a reason's share of the calls that Triton was asked in vain during the incident."""
    step, query = f"triton.failed_calls_{reason}_share", f'increase({FALLBACK}{{reason!~"breaker_open|late"}}[1m])'
    begin, end = evidence.window.incident
    counts = {
        series.labels["reason"]: float(signals.increase((series,), begin, end) or 0.0)
        for series in evidence.get(FALLBACK) or ()
        # behind an open breaker, or too late, nobody was asked, which says nothing about why
        if series.labels.get("reason") not in {None, "breaker_open", "late"}
    }
    total = sum(counts.values())
    if total <= 0:
        return StepResult(step, None, "prometheus", query, "no call to Triton failed")
    share = counts.get(reason, 0.0) / total
    return StepResult(step, share, "prometheus", query, f"{share:.0%} of {total:.0f} calls that failed")


def failed_calls_refused_share(evidence: Evidence) -> StepResult:
    """Return the share of the failed calls at which nothing listened."""
    return _failed_share(evidence, "refused")


def failed_calls_timeout_share(evidence: Evidence) -> StepResult:
    """Return the share of the failed calls that were not answered in time."""
    return _failed_share(evidence, "timeout")


def failed_calls_unloaded_share(evidence: Evidence) -> StepResult:
    """Return the share of the failed calls at which Triton did not have the model."""
    return _failed_share(evidence, "unloaded")


def _served_mean(evidence: Evidence, begin: float, end: float) -> float | None:
    """Return Triton's own mean seconds for a request, None when it answered none."""
    count = signals.increase(evidence.get(SERVED) or (), begin, end)
    return signals.increase(evidence.get(SERVED_TIME) or (), begin, end) / count / 1e6 if count > 0 else None


def _connection_wait(evidence: Evidence) -> float | None:
    """Return the mean seconds that a call waited for a connection, None when no call tells."""
    begin, end = evidence.window.incident
    count = signals.increase(evidence.get(CONNECTION_COUNT) or (), begin, end)
    return signals.increase(evidence.get(CONNECTION_SUM) or (), begin, end) / count if count > 0 else None


def connection_wait_seconds(evidence: Evidence) -> StepResult:
    """Return the mean seconds that a call waited inside the client for a free connection."""
    step, query = "triton.connection_wait_seconds", f"mean of {CONNECTION_SUM}"
    value = _connection_wait(evidence)
    detail = "no call to a Triton" if value is None else f"a call waits {value:.3f} s before anything of it is sent"
    return StepResult(step, value, "prometheus", query, detail)


def connection_wait_calls(evidence: Evidence) -> StepResult:
    """Return that wait counted in Triton's own time for a request: a busy server keeps connections busy as well."""
    step, query = "triton.connection_wait_calls", f"mean of {CONNECTION_SUM} by mean of {SERVED_TIME}"
    waited, own = _connection_wait(evidence), _served_mean(evidence, *evidence.window.incident)
    if waited is None or not own:
        return StepResult(step, None, "prometheus", query, "no calls to a Triton that tells of its own time")
    detail = f"a wait of {waited:.3f} s for a server that takes {own:.3f} s"
    return StepResult(step, waited / own, "prometheus", query, detail)


def outside_seconds(evidence: Evidence) -> StepResult:
    """Return the mean seconds of a call that neither Triton knows of nor the wait for a connection: the way there."""
    step = "triton.outside_seconds"
    query = f'mean of {signals.STAGE_SUM}{{stage="triton.client"}} less means of {SERVED_TIME} and {CONNECTION_SUM}'
    begin, end = evidence.window.incident

    def grown(name: str) -> float:
        series = evidence.get(name) or ()
        return signals.increase([one for one in series if one.labels.get("stage") == "triton.client"], begin, end)

    own, calls = _served_mean(evidence, begin, end), grown(signals.STAGE_COUNT)
    if own is None or calls <= 0:
        return StepResult(step, None, "prometheus", query, "no calls to a Triton that tells of its own time")
    seen, waited = grown(signals.STAGE_SUM) / calls, _connection_wait(evidence) or 0.0
    detail = f"a call takes {seen:.3f} s, of which Triton has {own:.3f} s and the wait for a connection {waited:.3f} s"
    return StepResult(step, seen - own - waited, "prometheus", query, detail)


def own_time_ratio(evidence: Evidence) -> StepResult:
    """Return Triton's own time for a request, its queue included, against the time before."""
    step, query = "triton.own_time_ratio", f"mean of {SERVED_TIME}, incident against baseline"
    own = _served_mean(evidence, *evidence.window.incident)
    before = _served_mean(evidence, *evidence.window.baseline)
    if own is None or not before:
        return StepResult(step, None, "prometheus", query, "no healthy time of a Triton to compare with")
    return StepResult(step, own / before, "prometheus", query, f"{before:.3f} s before, {own:.3f} s now")
