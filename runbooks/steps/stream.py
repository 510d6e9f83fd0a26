"""Is the stream of user queries behind, does it catch up, and is that since it got slower or since more comes?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from runbooks import signals, stream_queries
from runbooks.evidence import Evidence, Series, StepResult

__all__ = ["arrivals", "lag", "late_windows", "pace", "stands", "waiting_kept"]

# A rate of less time than this is that of a batch or two.
LEAST_SECONDS: Final = 20.0
# As in alerts/catalogue/stream_lag.yaml: fewer are what comes between two looks.
LEAST_WAITING: Final = 100.0
MINUTE_SECONDS: Final = 60.0
# A gauge that was last seen longer ago than this says nothing of the moment.
STALE_SECONDS: Final = 30.0


def _at(series: Iterable[Series] | None, moment: float) -> float | None:
    """Return the sum of the values that series had at a moment; None where none was seen shortly before."""
    found = []
    for one in series or ():
        before = one.times <= moment
        if before.any() and one.times[before][-1] >= moment - STALE_SECONDS:
            found.append(float(one.values[before][-1]))
    return sum(found) if found else None


def lag(evidence: Evidence) -> StepResult:
    """Return the age of the latest message that was done, in seconds, while others wait."""
    until = evidence.window.incident[1]
    found = [value for one in evidence.get(stream_queries.LAG) or () if (value := _at([one], until)) is not None]
    value = max(found, default=None)
    detail = "there is no stream" if value is None else f"the latest message that was done is {value:.0f} s old"
    return StepResult("stream.lag", value, "prometheus", f"max({stream_queries.LAG})", detail)


def waiting_kept(evidence: Evidence) -> StepResult:
    """Return the messages that wait over the most that waited within the last minute: under 1 the stream catches up."""
    step, query = "stream.waiting_kept", f"{stream_queries.WAITING} / max_over_time({stream_queries.WAITING}[1m])"
    series, until = evidence.get(stream_queries.WAITING), evidence.window.incident[1]
    now = _at(series, until)
    times = [one.times[(one.times <= until) & (one.times >= until - MINUTE_SECONDS)] for one in series or ()]
    sums = [_at(series, float(moment)) for moment in (np.unique(np.concatenate(times)) if times else ())]
    most = max((one for one in sums if one is not None), default=0.0)
    if now is None or most < LEAST_WAITING:
        return StepResult(step, None, "prometheus", query, "hardly a message waits")
    return StepResult(
        step, now / most, "prometheus", query, f"{now:.0f} messages wait, of up to {most:.0f} in a minute"
    )


def _done(evidence: Evidence, since: float, until: float) -> float | None:
    """Return messages done a second; None where nothing is known of the time."""
    series = evidence.get(stream_queries.MESSAGES)
    if not series or until - since < LEAST_SECONDS:
        return None
    times = np.concatenate([one.times for one in series])
    inside = times[(times >= since) & (times <= until)]
    if not len(inside) or inside[-1] - inside.min() < LEAST_SECONDS / 2:
        return None
    return signals.increase(series, since, until) / (until - since)


def _compared(step: str, query: str, during: float | None, before: float | None, what: str) -> StepResult:
    if during is None or not before:
        return StepResult(step, None, "prometheus", query, f"not known how many {what} before")
    detail = f"{during:.0f} {what} a second, before {before:.0f}"
    return StepResult(step, during / before, "prometheus", query, detail)


def pace(evidence: Evidence) -> StepResult:
    """Return the messages done a second in the incident over those before it: under 1 the reader got slower."""
    query = f"sum(rate({stream_queries.MESSAGES}[1m]))"
    during, before = _done(evidence, *evidence.window.incident), _done(evidence, *evidence.window.baseline)
    return _compared("stream.pace", query, during, before, "are done")


def arrivals(evidence: Evidence) -> StepResult:
    """Return the messages that came a second in the incident over those before: what was done and what waits now."""
    query = f"sum(rate({stream_queries.MESSAGES}[1m])) + sum(deriv({stream_queries.WAITING}[1m]))"
    since, until = evidence.window.incident
    series = evidence.get(stream_queries.WAITING)
    during, before = _done(evidence, since, until), _done(evidence, *evidence.window.baseline)
    at_end, at_start = _at(series, until), _at(series, since)
    if during is not None and at_end is not None and at_start is not None:
        during += (at_end - at_start) / (until - since)
    else:
        during = None
    return _compared("stream.arrivals", query, during, before, "come")


def late_windows(evidence: Evidence) -> StepResult:
    """Return how many windows were complete more than a minute late since the incident began."""
    query = f'increase({stream_queries.WINDOWS}{{result="late"}}[5m])'
    series = evidence.get(stream_queries.WINDOWS)
    if series is None:
        return StepResult("stream.late_windows", None, "prometheus", query, "there is no stream")
    late = [one for one in series if one.labels.get("result") == "late"]
    value = signals.increase(late, *evidence.window.incident)
    return StepResult("stream.late_windows", value, "prometheus", query, f"{value:.0f} windows were late")


def stands(evidence: Evidence) -> StepResult:
    """Return 1 where the stream does not go on at all, for its state or for where dead letters go; else 0."""
    found = [
        value
        for one in evidence.get(stream_queries.STANDS) or ()
        if (value := _at([one], evidence.window.incident[1])) is not None
    ]
    value = max(found, default=None)
    detail = {None: "there is no stream", 0.0: "it goes on"}.get(value, "it stands: its log says why")
    return StepResult("stream.stands", value, "prometheus", f"max({stream_queries.STANDS})", detail)
