"""Does the process get the CPU that it wants? Told by its quota and by what its event loop waits for a CPU."""

from __future__ import annotations

from runbooks import signals
from runbooks.evidence import Evidence, StepResult

__all__ = ["loop_wait_ratio", "loop_wait_share", "throttled_share"]

# Fewer periods of 0.1 s than this are a second or two.
LEAST_PERIODS = 20.0


def throttled_share(evidence: Evidence) -> StepResult:
    """Return the share of the quota's periods in the incident in which the control group was throttled."""
    step, query = "cpu.throttled_share", f"rate({signals.CPU_THROTTLED}[1m]) / rate({signals.CPU_PERIODS}[1m])"
    window = evidence.window.incident
    periods = signals.increase(evidence.get(signals.CPU_PERIODS) or (), *window)
    if periods < LEAST_PERIODS:
        return StepResult(step, None, "prometheus", query, "no quota is known")
    value = signals.increase(evidence.get(signals.CPU_THROTTLED) or (), *window) / periods
    return StepResult(step, value, "prometheus", query, f"throttled in {value:.0%} of the quota's periods")


def _waited(evidence: Evidence, since: float, until: float) -> float | None:
    """Return the share of the time that a worker's loop waited for a CPU; None when it is not known."""
    series = evidence.get(signals.LOOP_CPU_WAIT)
    if series is None or until - since < 10.0:
        return None
    workers = len([one for one in evidence.get(signals.WORKER_UP) or () if len(one.values) and one.values[-1] > 0])
    return signals.increase(series, since, until) / (until - since) / max(workers, 1)


def loop_wait_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident in which the loop of a worker was ready to run and got no CPU."""
    step, query = "cpu.loop_wait_share", f"rate({signals.LOOP_CPU_WAIT}[1m]) / sum({signals.WORKER_UP})"
    value = _waited(evidence, *evidence.window.incident)
    detail = "not known here" if value is None else f"the loop waited for a CPU in {value:.0%} of the time"
    return StepResult(step, value, "prometheus", query, detail)


def loop_wait_ratio(evidence: Evidence) -> StepResult:
    """Return that share over the same worker's before the onset."""
    step, query = "cpu.loop_wait_ratio", f"{signals.LOOP_CPU_WAIT} against the baseline"
    now, before = _waited(evidence, *evidence.window.incident), _waited(evidence, *evidence.window.baseline)
    if now is None or before is None:
        return StepResult(step, None, "prometheus", query, "no healthy time to compare with")
    # Under a hundredth nobody notices it: a ratio to less would only magnify noise.
    value = now / max(before, 0.01)
    return StepResult(step, value, "prometheus", query, f"{value:.1f} times the share before")
