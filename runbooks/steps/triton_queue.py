"""What requests wait for inside Triton: nobody to share a batch with, or batch mates that could not be joined."""

from __future__ import annotations

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.triton_queries import COMPUTE_TIME, EXECUTIONS, INFERENCES, QUEUE_TIME, SERVED

__all__ = ["compute_times", "queue_ratio", "queue_seconds", "texts_per_run", "waiting"]


def _grown(evidence: Evidence, name: str, window: tuple[float, float] | None = None) -> float:
    return signals.increase(evidence.get(name) or (), *(window or evidence.window.incident))


def _mean(evidence: Evidence, name: str, window: tuple[float, float] | None = None) -> float | None:
    """Return the mean seconds of a request that went into something, None when Triton answered none."""
    count = _grown(evidence, SERVED, window)
    return _grown(evidence, name, window) / count / 1e6 if count > 0 and evidence.get(name) else None


def queue_seconds(evidence: Evidence) -> StepResult:
    """Return the mean seconds that a request waited in Triton's own queue."""
    value = _mean(evidence, QUEUE_TIME)
    detail = "no requests at a Triton" if value is None else f"a request waits {value:.3f} s in Triton's queue"
    return StepResult("triton_queue.queue_seconds", value, "prometheus", f"mean of {QUEUE_TIME}", detail)


def queue_ratio(evidence: Evidence) -> StepResult:
    """Return that wait against the wait before."""
    step, query = "triton_queue.queue_ratio", f"mean of {QUEUE_TIME}, incident against baseline"
    now, before = _mean(evidence, QUEUE_TIME), _mean(evidence, QUEUE_TIME, evidence.window.baseline)
    if now is None or not before:
        return StepResult(step, None, "prometheus", query, "no healthy wait in a Triton's queue to compare with")
    return StepResult(step, now / before, "prometheus", query, f"{before:.3f} s before, {now:.3f} s now")


def compute_times(evidence: Evidence) -> StepResult:
    """Return that wait counted in the time the model takes: behind a busy model it is one or two of those."""
    step, query = "triton_queue.compute_times", f"mean of {QUEUE_TIME} by mean of {COMPUTE_TIME}"
    waited, computed = _mean(evidence, QUEUE_TIME), _mean(evidence, COMPUTE_TIME)
    if waited is None or not computed:
        return StepResult(step, None, "prometheus", query, "no requests that a Triton computed")
    detail = f"a wait of {waited:.3f} s for a model that takes {computed:.3f} s"
    return StepResult(step, waited / computed, "prometheus", query, detail)


def waiting(evidence: Evidence) -> StepResult:
    """Return how many requests stood in the queue at a time in the mean: their waits by the time that passed."""
    step, query = "triton_queue.waiting", f"rate({QUEUE_TIME}[1m]) / 1e6"
    begin, end = evidence.window.incident
    if _grown(evidence, SERVED) <= 0 or not evidence.get(QUEUE_TIME) or end <= begin:
        return StepResult(step, None, "prometheus", query, "no requests at a Triton")
    value = _grown(evidence, QUEUE_TIME) / 1e6 / (end - begin)
    return StepResult(step, value, "prometheus", query, f"{value:.1f} requests stand in the queue at a time")


def texts_per_run(evidence: Evidence) -> StepResult:
    """Return how many texts a run of the model took: near 1 nothing was batched."""
    step, query = "triton_queue.texts_per_run", f"increase({INFERENCES}[1m]) / increase({EXECUTIONS}[1m])"
    runs = _grown(evidence, EXECUTIONS)
    if runs <= 0 or not evidence.get(INFERENCES):
        return StepResult(step, None, "prometheus", query, "no run of a Triton's model")
    value = _grown(evidence, INFERENCES) / runs
    return StepResult(step, value, "prometheus", query, f"{value:.1f} texts a run")
