"""Does work wait for a thread of the executor, and what are its threads busy with?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Episode

__all__ = ["busy_place", "busy_share", "counted_wait", "cpu_share", "wait"]

_PAGES: Final = "status pages: executor"


def _worst(evidence: Evidence) -> Mapping[str, Any] | None:
    """Return what the worker whose executor lets wait longest tells; None when none tells."""
    told = []
    for ring in evidence.rows.rings if evidence.rows is not None else ():
        found = ring.status.get("executor")
        # What a worker told last before the incident is no sign of it.
        if isinstance(found, Mapping) and ring.last_sign_s >= evidence.window.incident[0]:
            told.append(found)
    return max(told, key=lambda one: float(one.get("wait_s") or 0.0), default=None)


def wait(evidence: Evidence) -> StepResult:
    """Return for how many seconds a call waited for a thread of the executor when the worst worker told last."""
    step, worst = "executor.wait", _worst(evidence)
    if worst is None or not isinstance(worst.get("wait_s"), int | float):
        return StepResult(step, None, "ring", _PAGES, "no worker tells of an executor")
    return StepResult(
        step, float(worst["wait_s"]), "ring", _PAGES, f"a call waits {worst['wait_s']:.2f} s for a thread"
    )


def counted_wait(evidence: Evidence) -> StepResult:
    """Return the median over the incident's scrapes of the longest wait of a worker, in seconds: a peak is a burst."""
    step, query = "executor.counted_wait", signals.EXECUTOR_WAIT
    since, until = evidence.window.incident
    values = sorted(
        value
        for one in evidence.get(query) or ()
        for moment, value in zip(one.times.tolist(), one.values.tolist(), strict=True)
        if since <= moment <= until
    )
    if not values:
        return StepResult(step, None, "prometheus", query, "not known here")
    middle = values[len(values) // 2]
    return StepResult(step, middle, "prometheus", query, f"{middle:.2f} s at half of the scrapes or more")


def busy_share(evidence: Evidence) -> StepResult:
    """Return the share of the executor's threads that are at work, where work waits for one."""
    step, worst = "executor.busy_share", _worst(evidence)
    if worst is None or not worst.get("threads") or not worst.get("places"):
        return StepResult(step, None, "ring", _PAGES, "no worker tells what its threads are busy with")
    value = worst["busy"] / worst["threads"]
    return StepResult(step, value, "ring", _PAGES, f"{worst['busy']} of {worst['threads']} threads are at work")


def busy_place(evidence: Evidence) -> StepResult:
    """Return the line at which most threads of the executor are."""
    step, worst = "executor.busy_place", _worst(evidence)
    places = (worst or {}).get("places") or ()
    if worst is None or not places:
        return StepResult(step, None, "ring", _PAGES, "no worker tells what its threads are busy with")
    frame = Episode(0.0, 0.0, tuple(str(line) for line in places[0]["stack"])).frame
    detail = f"{places[0]['threads']} of {worst['threads']} threads are at {frame}"
    return StepResult(step, frame, "ring", _PAGES, detail)


def cpu_share(evidence: Evidence) -> StepResult:
    """Return the CPU seconds a second that a worker used in the incident: near 1 it computes, threads do not help."""
    step, query = "executor.cpu_share", f"rate({signals.CPU}[1m]) / sum({signals.WORKER_UP})"
    since, until = evidence.window.incident
    cpu = evidence.get(signals.CPU)
    if cpu is None or until - since < 10.0:
        return StepResult(step, None, "prometheus", query, "not known here")
    workers = len([one for one in evidence.get(signals.WORKER_UP) or () if len(one.values) and one.values[-1] > 0]) or 1
    value = signals.increase(cpu, since, until) / (until - since) / workers
    return StepResult(step, value, "prometheus", query, f"a worker used {value:.2f} CPU seconds a second")
