"""When nothing can be named: what left its usual level most, by layer, so that there is a place to look."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from exporters.names import SPANS
from runbooks import signals
from runbooks.evidence import Evidence, Series
from runbooks.onset import watched
from runbooks.rows import Floats

__all__ = ["unusual_signals"]

MOST_SIGNALS: Final = 8
LEAST_SCORE: Final = 4.0
_LAYERS: Final = {"model": "model", "runtime": "runtime", "telemetry": "telemetry", "gpu": "gpu", "data": "data"}
# Labels that tell series of one metric apart for people; `le` and the scrape's own are not among them.
_LABELS: Final = ("stage", "outcome", "reason", "source", "generation", "input_bucket", "job")
_GAUGES: Final = (
    signals.IN_FLIGHT,
    signals.OLDEST,
    signals.RESIDENT,
    signals.DESCRIPTORS,
    signals.HOST_CPU,
    signals.UNREAD,
    signals.UP,
)
_COUNTERS: Final = (signals.BLOCKED, signals.REQUESTS, signals.LOST, signals.GC_PAUSE)


def unusual_signals(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the most unusual signals, first the one that moved most.

    A signal's score is |median now - median before| over its usual spread (median absolute deviation times 1.4826, at
    least 5% of its level), so that it says "how many times its usual wobble".
    """
    found: list[dict[str, Any]] = []
    for query in (*_GAUGES, *_COUNTERS):
        for series in evidence.get(query) or ():
            times, values = (series.times, series.values) if query in _GAUGES else _per_second(series)
            measured = _moved(evidence, times, values)
            if measured:
                found.append(
                    {"signal": _name(query, series), "layer": _layer(query, series), "source": "prometheus"} | measured
                )
    found += _from_stages(evidence) + _from_rows(evidence) + _from_watched(evidence)
    loud = [one for one in found if one["score"] >= LEAST_SCORE]
    return sorted(loud, key=lambda one: -float(one["score"]))[:MOST_SIGNALS]


def _from_stages(evidence: Evidence) -> list[dict[str, Any]]:
    """Return each stage's mean duration from Prometheus; where there are rows they tell it better."""
    if evidence.rows is not None:
        return []
    counts = {one.labels.get("stage", ""): one for one in evidence.get(signals.STAGE_COUNT) or ()}
    found: list[dict[str, Any]] = []
    for one in evidence.get(signals.STAGE_SUM) or ():
        stage = one.labels.get("stage", "")
        count = counts.get(stage)
        if count is None or not np.array_equal(count.times, one.times):
            continue
        times, seconds = signals.increments(one)
        _, requests = signals.increments(count)
        served = requests > 0
        measured = _moved(evidence, times[served], seconds[served] / requests[served])
        if measured:
            found.append(
                {"signal": f"seconds in {stage}", "layer": _stage_layer(stage), "source": "prometheus"} | measured
            )
    return found


def _from_rows(evidence: Evidence) -> list[dict[str, Any]]:
    rows = evidence.rows
    if rows is None or len(rows) < 20:
        return []
    signals_of_rows = {name: (_stage_layer(name), seconds) for name, seconds in rows.self_times().items()}
    signals_of_rows["request duration"] = ("runtime", rows.duration_s)
    found = []
    for name, (layer, seconds) in signals_of_rows.items():
        measured = _moved(evidence, rows.end_s, seconds)
        if measured:
            found.append(
                {
                    "signal": f"seconds in {name}" if name != "request duration" else name,
                    "layer": layer,
                    "source": "ring",
                }
                | measured
            )
    return found


def _from_watched(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the decisive signals by how many times the smallest change that matters they moved, and silent workers."""
    since, until = evidence.window.incident
    found: list[dict[str, Any]] = []
    for signal in watched(evidence):
        inside = (signal.edges[:-1] >= since - 5.0) & (signal.edges[:-1] < until) & ~np.isnan(signal.values)
        before = (signal.edges[1:] <= since) & ~np.isnan(signal.values)
        if inside.any() and before.any():
            now, usual = float(signal.values[inside].mean()), float(signal.values[before].mean())
            layer = "telemetry" if signals.EXPORTER_JOB in signal.name else "runtime"
            measured = {"before": usual, "now": now, "score": round(LEAST_SCORE * (now - usual) / signal.effect, 1)}
            found.append({"signal": signal.name, "layer": layer, "source": signal.source} | measured)
    rings = evidence.rows.rings if evidence.rows else ()
    # A worker that was started again has its number from its predecessor, whose file stays for a while.
    at_work = {ring.worker for ring in rings if ring.last_sign_s >= until - 10.0}
    for ring in rings if at_work else ():
        age = until - ring.last_sign_s
        if ring.worker not in at_work and age < until - evidence.window.since:
            text = f"worker {ring.worker} silent while others go on (seconds)"
            found.append(
                {"signal": text, "layer": "runtime", "source": "ring", "before": 0.0, "now": age, "score": age}
            )
    return found


def _per_second(series: Series) -> tuple[Floats, Floats]:
    times, steps = signals.increments(series)
    return times, steps / np.maximum(np.diff(series.times), 1e-3)


def _moved(evidence: Evidence, times: Floats, values: Floats) -> dict[str, float] | None:
    (since, until), (begin, end) = evidence.window.incident, evidence.window.baseline
    now, before = values[(times >= since) & (times <= until)], values[(times >= begin) & (times < end)]
    if len(now) < 2 or len(before) < 4:
        return None
    usual, level = float(np.median(before)), float(np.median(now))
    spread = 1.4826 * float(np.median(np.abs(before - usual)))
    score = abs(level - usual) / max(spread, 0.05 * abs(usual), 1e-6)
    return {"before": usual, "now": level, "score": round(min(score, 1000.0), 1)}


def _name(query: str, series: Series) -> str:
    labels = ",".join(f"{key}={series.labels[key]}" for key in _LABELS if key in series.labels)
    return f"{query}{{{labels}}}" if labels else query


def _layer(query: str, series: Series) -> str:
    if "stage" in series.labels:
        return _stage_layer(series.labels["stage"])
    return "host" if query == signals.HOST_CPU else _LAYERS.get(query.split("_", maxsplit=1)[0], "runtime")


def _stage_layer(stage: str) -> str:
    return SPANS[stage].layer if stage in SPANS else "runtime"
