"""Does the tokenizer's cache grow beyond its bound, and do loads of tokenizers wait for each other?"""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.rows import Floats
from runbooks.token_queries import CACHE_BOUND, CACHED, CONCURRENT_LOADS, LOAD_SECONDS, highest, over_bound

__all__ = ["cached_growth", "cached_over_bound", "concurrent_loads", "load_spread", "memory_follows", "slowest_load"]

# What is so at the end counts beside what was so in the incident: a cache that is full makes nobody slow.
NOW_SECONDS = 30.0
# A load that ended so long before the onset belongs to another start; as for the phases of a start.
BEFORE_SECONDS = 30.0
# Fewer readings of memory and cache say nothing about whether they go together.
LEAST_POINTS = 4


def _result(step: str, value: float | None, query: str, detail: str) -> StepResult:
    return StepResult(f"tokenizing.{step}", value, "prometheus", query, detail)


def _since(evidence: Evidence) -> float:
    """Return where what is of now begins."""
    return min(evidence.window.incident[0], evidence.window.until - NOW_SECONDS)


def _of_now(evidence: Evidence, series: Series) -> Series:
    """Return the part of a series that is of the incident or of the end."""
    mask = (series.times >= _since(evidence)) & (series.times <= evidence.window.until)
    return Series(series.labels, series.times[mask], series.values[mask])


def cached_over_bound(evidence: Evidence) -> StepResult:
    """Return how many texts' tokens are kept over how many may be, at the end."""
    query, ratio = f"{CACHED} / {CACHE_BOUND}", over_bound(evidence)
    if ratio is None or not len(_of_now(evidence, ratio).values):
        return _result("cached_over_bound", None, query, "no service keeps tokens, or says how many it may keep")
    value = float(_of_now(evidence, ratio).values[-1])
    return _result("cached_over_bound", value, query, f"{value:.2f} times as many texts as may be kept")


def cached_growth(evidence: Evidence) -> StepResult:
    """Return by how many texts a second the cache grew lately."""
    known = highest(evidence.get(CACHED) or ())
    recent = None if known is None else _of_now(evidence, known)
    if recent is None or len(recent.values) < 2:
        return _result("cached_growth", None, f"deriv({CACHED}[1m])", "no service tells of what it keeps")
    value = float((recent.values[-1] - recent.values.min()) / max(recent.times[-1] - recent.times[0], 1.0))
    return _result("cached_growth", value, f"deriv({CACHED}[1m])", f"{value:.1f} more texts a second")


def memory_follows(evidence: Evidence) -> StepResult:
    """Return how closely the worker's memory goes with what the cache holds: 1 they rise together, 0 they do not."""
    query = f"{signals.RESIDENT} against {CACHED}"
    kept, held = (highest(evidence.get(name) or ()) for name in (CACHED, signals.RESIDENT))
    recent = None if kept is None else _of_now(evidence, kept)
    if recent is None or held is None or len(recent.times) < LEAST_POINTS:
        return _result("memory_follows", None, query, "too few readings of memory and cache")
    # From where the cache starts to grow: a new process has loaded its model by then.
    begin = int(recent.values.argmin())
    times, texts = recent.times[begin:], recent.values[begin:]
    within = (times >= held.times[0]) & (times <= held.times[-1])
    times, texts = times[within], texts[within]
    memory: Floats = np.interp(times, held.times, held.values)
    if len(times) < LEAST_POINTS:
        return _result("memory_follows", None, query, "the cache began to grow too short a time ago")
    if np.ptp(texts) == 0 or np.ptp(memory) == 0:
        return _result("memory_follows", None, query, "the cache, or the memory, stands still")
    value = float(np.corrcoef(texts, memory)[0, 1])
    grown, more = memory[-1] - memory[0], texts[-1] - texts[0]
    detail = f"{grown / 2**20:.1f} MiB for {more:.0f} texts, {grown / max(more, 1.0) / 1024:.1f} KiB each"
    return _result("memory_follows", value, query, detail)


def _loads(evidence: Evidence) -> tuple[float, float] | None:
    """Return quickest and slowest load of the starts of now, (0, 0) when none ended; None when nobody tells."""
    found = {}
    since = evidence.window.incident[0] - BEFORE_SECONDS
    for which in ("quickest", "slowest"):
        known = highest(one for one in evidence.get(LOAD_SECONDS) or () if one.labels.get("which") == which)
        if known is None:
            return None
        # the gauge stands still once the loads have ended
        moved = known.times[1:][np.diff(known.values) != 0.0]
        of_now = (moved >= since) & (moved <= evidence.window.until)
        found[which] = float(known.values[-1]) if of_now.any() or which == "quickest" else 0.0
    return (found["quickest"], found["slowest"]) if found["slowest"] else (0.0, 0.0)


def slowest_load(evidence: Evidence) -> StepResult:
    """Return how many seconds the slowest load of a tokenizer took in a start of now; 0 without one."""
    query, found = f'{LOAD_SECONDS}{{which="slowest"}}', _loads(evidence)
    if found is None:
        return _result("slowest_load", None, query, "no service tells how long it loaded")
    return _result("slowest_load", found[1], query, f"the slowest took {found[1]:.1f} s")


def load_spread(evidence: Evidence) -> StepResult:
    """Return the time of the slowest load over that of the quickest: behind one lock, as many as there are loads."""
    query, found = f"{LOAD_SECONDS}: slowest over quickest", _loads(evidence)
    if found is None:
        return _result("load_spread", None, query, "no service tells how long it loaded")
    if not found[1]:
        return _result("load_spread", 1.0, query, "no tokenizer was loaded in this time")
    value = found[1] / max(found[0], 0.01)
    return _result("load_spread", value, query, f"{found[0]:.1f} s the quickest, {found[1]:.1f} s the slowest")


def concurrent_loads(evidence: Evidence) -> StepResult:
    """Return how many loads of a tokenizer ran at one time."""
    known = highest(evidence.get(CONCURRENT_LOADS) or ())
    if known is None:
        return _result("concurrent_loads", None, CONCURRENT_LOADS, "no service tells of its loads")
    value = float(known.values[-1])
    return _result("concurrent_loads", value, CONCURRENT_LOADS, f"{value:.0f} at one time")
