"""What metrics alone tell when there are no rows, and what cannot be told without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.rows import Floats
from runbooks.slowness import SLOW_EXTRA_SECONDS, SLOW_FACTOR
from runbooks.targets import down_seconds

__all__ = ["failed_share_over", "symptoms", "untold", "without_rows"]

# As runbooks/ServiceDown.md: a restart by a deploy is shorter.
DOWN_SECONDS: Final = 15.0
# One request in thirty, as the smallest change that matters elsewhere (runbooks/onset.py), and not one request's luck.
LEAST_SHARE: Final = 0.03
LEAST_FAILED: Final = 5.0
LEAST_REQUESTS: Final = 20.0
TIMES_BEFORE: Final = 3.0
# Under one request in two seconds a pause says nothing (runbooks/steps/liveness.py).
LEAST_RATE: Final = 0.5
STOPPED_RATIO: Final = 0.05
# Half again as much, and more than an allocator's steps.
MEMORY_RATIO: Final = 1.5
MEMORY_BYTES: Final = float(100 << 20)
# As in alerts/catalogue/file_descriptors_near_limit.yaml.
DESCRIPTORS_RATIO: Final = 0.7
FAILED: Final = ("error", "degraded")

_UNTOLD: Final = (
    "which requests: no row, so no trace id, no waterfall and no look-up of a session",
    "which clients, releases, devices or lengths of input: nothing about what differs",
    "how many sessions are hurt: impact is counted in requests alone",
    "whose code: no stack of what blocks the event loop",
    "what was in work when a process died: no open requests, no last stage",
)
_NO_STAGES: Final = "which stage takes the time: no times of stages"


def without_rows(detail: str) -> str:
    """Return what is said of a step that only rows can answer."""
    return f"cannot be told without rows ({detail})" if detail else "cannot be told without rows"


def untold(evidence: Evidence, absent: Mapping[str, str] | None = None) -> list[str]:
    """Return one sentence for each thing that cannot be told; empty with rows.

    Args:
        evidence: What is known.
        absent: Of a mapped service: our name -> why there is nothing of it.
    """
    if evidence.rows is not None:
        return []
    stages = () if evidence.get(signals.STAGE_SUM) else (_NO_STAGES,)
    return [*_UNTOLD, *stages, *(f"{name}: {why}" for name, why in (absent or {}).items())]


def symptoms(evidence: Evidence) -> list[dict[str, Any]]:
    """Return what metrics alone show to be wrong, worst first; empty with rows, which tell it better.

    Returns:
        Dicts of `symptom`, `layer`, `now`, `before` (None: unknown), `text` and `query`.
    """
    if evidence.rows is not None or evidence.series is None:
        return []
    found = [_down(evidence), _stopped(evidence), _failed(evidence), _refused(evidence), _slow(evidence)]
    found += [_memory(evidence), _descriptors(evidence)]
    return [one for one in found if one is not None]


def failed_share_over(series: Iterable[Series], edges: Floats) -> tuple[Floats, Floats]:
    """Return the share of failed requests per bin, NaN where none ended, and how many ended.

    Args:
        series: Of the counter of requests.
        edges: Borders of the bins, unix seconds, shape (n + 1,).
    """
    failed, every = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for one in series:
        times, steps = signals.increments(one)
        # A sample taken right at a border tells of the bin before it.
        grown, _ = np.histogram(times - 1e-3, edges, weights=steps)
        every += grown
        if one.labels.get("outcome") in FAILED:
            failed += grown
    share = np.full(len(every), np.nan)
    np.divide(failed, every, out=share, where=every > 0)
    return share, every


def _symptom(name: str, layer: str, now: float, before: float | None, *, text: str, query: str) -> dict[str, Any]:
    return {"symptom": name, "layer": layer, "now": now, "before": before, "text": text, "query": query}


def _down(evidence: Evidence) -> dict[str, Any] | None:
    up = evidence.get(signals.UP)
    seconds = None if up is None else down_seconds(up, signals.SERVICE_JOB, evidence.window.incident[1])
    if seconds is None or seconds < DOWN_SECONDS:
        return None
    text = f"the service's target has not answered for {seconds:.0f} s"
    return _symptom("service_down", "runtime", seconds, 0.0, text=text, query="up")


def _rates(evidence: Evidence) -> tuple[float, float] | None:
    """Return requests a second in the last half of the incident and before it; None when unknown."""
    requests, (since, until), (begin, end) = (
        evidence.get(signals.REQUESTS),
        evidence.window.incident,
        evidence.window.baseline,
    )
    if requests is None or end - begin < 20.0 or until - since < 10.0:
        return None
    middle = (since + until) / 2
    now = signals.increase(requests, middle, until) / (until - middle)
    return now, signals.increase(requests, begin, end) / (end - begin)


def _stopped(evidence: Evidence) -> dict[str, Any] | None:
    rates = _rates(evidence)
    if rates is None or rates[1] < LEAST_RATE or rates[0] > STOPPED_RATIO * rates[1]:
        return None
    text = f"{rates[0]:.2g} requests/s, {rates[1]:.3g} before"
    return _symptom("requests_stopped", "runtime", *rates, text=text, query=signals.REQUESTS)


def _settled(window: Window) -> tuple[float, float]:
    """Return the incident without its first bin: the onset is known to a bin, and busy healthy seconds would dilute."""
    since, until = window.incident
    return (min(since + window.MARGIN_SECONDS, (since + until) / 2), until)


def _share(evidence: Evidence, outcomes: tuple[str, ...], span: tuple[float, float]) -> tuple[float, float] | None:
    """Return the share of requests that ended so, and how many; None when too few ended."""
    requests = evidence.get(signals.REQUESTS) or ()
    every = signals.increase(requests, *span)
    some = signals.increase((one for one in requests if one.labels.get("outcome") in outcomes), *span)
    return None if every < LEAST_REQUESTS else (some / every, some)


def _more(evidence: Evidence, outcomes: tuple[str, ...]) -> tuple[float, float | None] | None:
    now = _share(evidence, outcomes, _settled(evidence.window))
    before = _share(evidence, outcomes, evidence.window.baseline)
    usual = before[0] if before else None
    if now is None or now[0] < LEAST_SHARE or now[1] < LEAST_FAILED or now[0] < TIMES_BEFORE * (usual or 0.0):
        return None
    return now[0], usual


def _before(share: float | None) -> str:
    return "before unknown" if share is None else f"{share:.1%} before"


def _failed(evidence: Evidence) -> dict[str, Any] | None:
    more = _more(evidence, FAILED)
    if more is None:
        return None
    text = f"{more[0]:.1%} of the requests fail, {_before(more[1])}"
    return _symptom("error_rate", "runtime", *more, text=text, query=signals.REQUESTS)


def _refused(evidence: Evidence) -> dict[str, Any] | None:
    more = _more(evidence, ("refused",))
    if more is None:
        return None
    text = f"{more[0]:.1%} of the requests are refused, {_before(more[1])}"
    return _symptom("refusals", "client", *more, text=text, query=signals.REQUESTS)


def _slow(evidence: Evidence) -> dict[str, Any] | None:
    latency = evidence.get(signals.LATENCY_BUCKET)
    if latency is None:
        return _slow_mean(evidence)
    counts = [signals.histogram(latency, *span) for span in (_settled(evidence.window), evidence.window.baseline)]
    now, before = (signals.quantile(one, 0.95) if sum(one.values()) >= LEAST_REQUESTS else None for one in counts)
    return _slower("P95", now, before, signals.LATENCY_BUCKET)


def _slow_mean(evidence: Evidence) -> dict[str, Any] | None:
    """Of times that are no histogram only the mean can be told; of the stage that holds most."""
    found: list[tuple[float, float, str]] = []
    for one in evidence.get(signals.STAGE_SUM) or ():
        stage = one.labels.get("stage", "")
        counts = [c for c in evidence.get(signals.STAGE_COUNT) or () if c.labels == one.labels]
        means = [
            signals.increase([one], *span) / count
            if (count := signals.increase(counts, *span)) >= LEAST_REQUESTS
            else None
            for span in (_settled(evidence.window), evidence.window.baseline)
        ]
        if means[0] is not None and means[1] is not None:
            found.append((means[0], means[1], stage))
    slower = [one for one in found if _slower("", one[0], one[1], "") is not None]
    if not slower:
        return None
    now, before, stage = max(slower, key=lambda one: (one[0] - one[1], one[2]))
    return _slower(f"mean of {stage}", now, before, signals.STAGE_SUM)


def _slower(what: str, now: float | None, before: float | None, query: str) -> dict[str, Any] | None:
    if now is None or before is None or now < max(SLOW_FACTOR * before, before + SLOW_EXTRA_SECONDS):
        return None
    text = f"{what} {now:.3g} s, {before:.3g} s before"
    return _symptom("latency", "runtime", now, before, text=text, query=query)


def _level(series: Iterable[Series], span: tuple[float, float]) -> float | None:
    """Return the highest of the series' medians in a time."""
    found = [one.values[(one.times >= span[0]) & (one.times <= span[1])] for one in series]
    return max((float(np.median(one)) for one in found if len(one)), default=None)


def _memory(evidence: Evidence) -> dict[str, Any] | None:
    series = evidence.get(signals.RESIDENT) or ()
    until = evidence.window.incident[1]
    now, before = _level(series, (until - 15.0, until)), _level(series, evidence.window.baseline)
    if now is None or before is None or now < max(MEMORY_RATIO * before, before + MEMORY_BYTES):
        return None
    text = f"{now / 2**20:.0f} MiB of memory, {before / 2**20:.0f} MiB before"
    return _symptom("memory_growth", "runtime", now, before, text=text, query=signals.RESIDENT)


def _descriptors(evidence: Evidence) -> dict[str, Any] | None:
    series = evidence.get(signals.DESCRIPTORS_RATIO) or ()
    until = evidence.window.incident[1]
    now, before = _level(series, (until - 15.0, until)), _level(series, evidence.window.baseline)
    if now is None or now < DESCRIPTORS_RATIO:
        return None
    text = f"{now:.0%} of the file descriptors are in use, {_before(before)}"
    return _symptom("file_descriptors_near_limit", "runtime", now, before, text=text, query=signals.DESCRIPTORS_RATIO)
