"""What the cluster says of our pods: those that fit nowhere, and rollouts that count pods as ready too early.

Read from kube-state-metrics; where there is none, none of it can be seen, and nothing of it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from runbooks import signals
from runbooks.cluster_queries import AVAILABLE, EXISTING, GENERATION, LARGEST, READY, REQUESTED, UNSCHEDULABLE, WANTED
from runbooks.evidence import Evidence, Series, StepResult
from runbooks.lives import STARTING

__all__ = [
    "fewest_available",
    "lacking_resource",
    "pending_seconds",
    "ready_but_starting_seconds",
    "rolled_out",
    "unschedulable_pods",
]

# Samples further apart than two scrapes of 15 s are no proof that nothing was between them.
MOST_GAP_SECONDS: Final = 31.0
# A rollout begins before what it does shows; the shipped rule looks back for as long.
ROLLOUT_SECONDS: Final = 300.0


def _end(evidence: Evidence) -> float:
    return evidence.window.incident[1]


def _near(series: Series, moment: float) -> float | None:
    """Return a series' value at a time: of the last sample before it that is not older than a gap; None else."""
    place = int(np.searchsorted(series.times, moment, side="right")) - 1
    if place < 0 or moment - float(series.times[place]) > MOST_GAP_SECONDS:
        return None
    return float(series.values[place])


def _known(evidence: Evidence) -> bool:
    """Return whether kube-state-metrics told of our deployments in the time looked at."""
    return bool(evidence.get(WANTED))


def _unseen(step: str, query: str) -> StepResult:
    return StepResult(step, None, "prometheus", query, "no kube-state-metrics that tells of our deployments")


def unschedulable_pods(evidence: Evidence) -> StepResult:
    """Return how many pods had no node that takes them, at the end of the incident."""
    step = "kubernetes.unschedulable_pods"
    if not _known(evidence):
        return _unseen(step, UNSCHEDULABLE)
    waiting = _waiting(evidence)
    names = ", ".join(sorted(one.labels.get("pod", "?") for one in waiting)[:3])
    detail = f"no node takes {names}" if waiting else "every pod has its node"
    return StepResult(step, float(len(waiting)), "prometheus", UNSCHEDULABLE, detail)


def _waiting(evidence: Evidence) -> list[Series]:
    return [one for one in evidence.get(UNSCHEDULABLE) or () if _near(one, _end(evidence))]


def pending_seconds(evidence: Evidence) -> StepResult:
    """Return for how long without a break the oldest of these pods had waited at the end of the incident."""
    step = "kubernetes.pending_seconds"
    if not _known(evidence):
        return _unseen(step, UNSCHEDULABLE)
    longest = max((_lasted(one.times, _end(evidence)) for one in _waiting(evidence)), default=0.0)
    return StepResult(step, longest, "prometheus", UNSCHEDULABLE, f"the oldest has waited for {longest:.0f} s")


def _lasted(times: np.ndarray[tuple[int], np.dtype[np.float64]], until: float) -> float:
    """Return for how long samples came without a gap, up to a time."""
    seen = times[times <= until]
    gaps = np.nonzero(np.diff(seen) > MOST_GAP_SECONDS)[0]
    first = seen[gaps[-1] + 1] if len(gaps) else seen[0]
    return float(until - first)


def lacking_resource(evidence: Evidence) -> StepResult:
    """Return a resource that a waiting pod asks for and no node has, or has enough of; "" when nodes have all of it."""
    step, query = "kubernetes.lacking_resource", f"{REQUESTED}; {LARGEST}"
    nodes = evidence.get(LARGEST)
    if not _known(evidence) or not nodes:
        return _unseen(step, query)
    given = {str(one.labels.get("resource")): float(one.values[-1]) for one in nodes}
    asked = _asked(evidence)
    for resource, wanted in sorted(asked.items()):
        if resource not in given:
            like = ", ".join(sorted(name for name in given if "_com_" in name or "_" in name)[:3]) or "none like it"
            detail = f"a pod asks for {wanted:g} {resource}, which no node has; nodes have {like}"
            return StepResult(step, resource, "prometheus", query, detail)
    for resource, wanted in sorted(asked.items()):
        if wanted > given[resource]:
            detail = f"a pod asks for {wanted:g} {resource}, and the largest node can give {given[resource]:g}"
            return StepResult(step, resource, "prometheus", query, detail)
    told = "labels, taints or other pods are in the way" if asked else "no pod waits"
    return StepResult(step, "", "prometheus", query, f"the largest node has all that is asked for: {told}")


def _asked(evidence: Evidence) -> Mapping[str, float]:
    """Return resource -> the most that one waiting pod asks for, its containers together."""
    by_pod: dict[tuple[str, str], float] = {}
    for one in evidence.get(REQUESTED) or ():
        value = _near(one, _end(evidence))
        if value is not None:
            key = (one.labels.get("pod", ""), one.labels.get("resource", ""))
            by_pod[key] = by_pod.get(key, 0.0) + value
    most: dict[str, float] = {}
    for (_pod, resource), value in by_pod.items():
        most[resource] = max(most.get(resource, 0.0), value)
    return most


def _by_deployment(series: Iterable[Series] | None) -> dict[str, Series]:
    return {str(one.labels.get("deployment")): one for one in series or ()}


def rolled_out(evidence: Evidence) -> StepResult:
    """Return whether a deployment of ours was changed in the incident or in the five minutes before it."""
    step = "kubernetes.rolled_out"
    known = evidence.get(GENERATION)
    if not known:
        return _unseen(step, GENERATION)
    since, until = evidence.window.incident[0] - ROLLOUT_SECONDS, evidence.window.until
    changed = []
    for name, one in _by_deployment(known).items():
        times = one.times[1:][np.diff(one.values) != 0.0]
        if ((times >= since) & (times <= until)).any():
            changed.append(name)
    detail = f"a rollout of {', '.join(sorted(changed))}" if changed else "no rollout"
    return StepResult(step, bool(changed), "prometheus", GENERATION, detail)


def fewest_available(evidence: Evidence) -> StepResult:
    """Return the fewest pods that were available in the incident, of the deployment that had the fewest."""
    step, query = "kubernetes.fewest_available", AVAILABLE
    wanted, available = _by_deployment(evidence.get(WANTED)), evidence.get(AVAILABLE)
    if not wanted or not available:
        return _unseen(step, query)
    since, until = evidence.window.incident[0], evidence.window.until
    fewest: dict[str, float] = {}
    for name, one in _by_deployment(available).items():
        inside = one.values[(one.times >= since) & (one.times <= until)]
        # Scaled to nothing on purpose is no gap.
        if name in wanted and len(inside) and wanted[name].values[-1] > 0:
            fewest[name] = float(inside.min())
    if not fewest:
        return StepResult(step, None, "prometheus", query, "no sample in the incident")
    name = min(fewest, key=lambda name: fewest[name])
    detail = f"{fewest[name]:.0f} of {wanted[name].values[-1]:.0f} pods of {name} were available at worst"
    return StepResult(step, fewest[name], "prometheus", query, detail)


def ready_but_starting_seconds(evidence: Evidence) -> StepResult:
    """Return for how long every pod counted as ready while one said of itself that it is starting."""
    step, query = "kubernetes.ready_but_starting_seconds", f"{READY} >= {EXISTING}; {signals.PHASE}"
    # Not those that are wanted: while a rollout surges the old pods alone are as many as that, and rightly ready.
    existing, ready = _by_deployment(evidence.get(EXISTING)), _by_deployment(evidence.get(READY))
    phases = [one for one in evidence.get(signals.PHASE) or () if one.labels.get("phase") in STARTING]
    if not existing or not ready:
        return _unseen(step, query)
    if not phases:
        return StepResult(step, None, "prometheus", query, "the service does not tell its phase")
    since, until = evidence.window.incident[0] - ROLLOUT_SECONDS, evidence.window.until
    moments = np.unique(np.concatenate([one.times[one.values > 0] for one in phases]))
    moments = moments[(moments >= since) & (moments <= until)]
    wrong = [float(moment) for moment in moments if _all_ready(existing, ready, float(moment))]
    total, last = 0.0, None
    for moment in wrong:
        total += 0.0 if last is None or moment - last > MOST_GAP_SECONDS else moment - last
        last = moment
    detail = f"every pod counted as ready for {total:.0f} s in which one said that it is starting"
    return StepResult(step, total, "prometheus", query, detail)


def _all_ready(existing: Mapping[str, Series], ready: Mapping[str, Series], moment: float) -> bool:
    counts = [(_near(existing[name], moment), _near(ready[name], moment)) for name in existing.keys() & ready.keys()]
    known = [(there, have) for there, have in counts if there is not None and have is not None and there > 0]
    return bool(known) and all(have >= there for there, have in known)
