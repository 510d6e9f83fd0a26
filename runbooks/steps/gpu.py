"""Is a card lost, saturated, shared or out of memory, or did a kernel get slower? By NVML's figures and the canary's.

A value is the median over the later half of the incident, in which it has come to where it stays.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from runbooks import gpu_queries as gpu
from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult

__all__ = [
    "busy",
    "busy_before",
    "common_ratio",
    "cpu_ratio",
    "free_share",
    "growing_share",
    "lost_card",
    "lost_cards",
    "minutes_left",
    "other_growth",
    "other_program",
    "other_share",
    "saturated",
    "slower_kernels",
    "slowest_kernel",
    "spoiled_share",
]

_NO_CARD = "no card is seen, or it does not tell"
# Shorter, and every card that takes a batch's memory would seem to grow without end.
_LEAST_GROWTH_SECONDS = 45.0
_PIECES = 6
# With fewer, one request decides over their mean.
_LEAST_REQUESTS = 40.0


def _inside(series: Series | None, span: tuple[float, float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if series is None:
        return np.zeros(0)
    return np.asarray(series.values[(series.times >= span[0]) & (series.times <= span[1])])


def _late(evidence: Evidence) -> tuple[float, float]:
    begin, end = evidence.window.incident
    return (begin + end) / 2, end


def _middle(evidence: Evidence, step: str, series: Series | None, query: str, said: str) -> StepResult:
    """Return the median of the incident's later half."""
    values = _inside(series, _late(evidence))
    if not len(values):
        return StepResult(step, None, "prometheus", query, _NO_CARD)
    value = float(np.median(values))
    return StepResult(step, value, "prometheus", query, f"{value:.0%} {said}")


def lost_cards(evidence: Evidence) -> StepResult:
    """Return how many cards that were seen once did not answer at the end of the incident."""
    step, query = "gpu.lost_cards", f"{gpu.CARD_STATE}"
    values = _inside(gpu.lost(evidence), _late(evidence))
    if not len(values):
        return StepResult(step, None, "prometheus", query, "no card was ever seen")
    value = float(np.median(values))
    return StepResult(step, value, "prometheus", query, f"{value:.0f} cards do not answer")


def lost_card(evidence: Evidence) -> StepResult:
    """Return which card does not answer, and what NVML says of it."""
    step, query = "gpu.lost_card", f"{gpu.CARD_STATE}"
    for one in evidence.get(gpu.CARD_STATE) or ():
        if one.labels.get("state") in gpu.LOST_STATES and (_inside(one, _late(evidence)) > 0).any():
            value = f"GPU {one.labels.get('gpu', '')}: {one.labels['state']}"
            return StepResult(step, value, "prometheus", query, value)
    return StepResult(step, None, "prometheus", query, "every card that was seen answers")


def busy(evidence: Evidence) -> StepResult:
    """Return the utilisation of the busiest card, 0..1."""
    return _middle(evidence, "gpu.busy", gpu.busiest(evidence), gpu.UTILIZATION, "busy")


def busy_before(evidence: Evidence) -> StepResult:
    """Return by how much the busiest card's utilisation is above that before the incident."""
    step, query, series = "gpu.busy_before", gpu.UTILIZATION, gpu.busiest(evidence)
    now, before = _inside(series, _late(evidence)), _inside(series, evidence.window.baseline)
    if not len(now) or not len(before):
        return StepResult(step, None, "prometheus", query, "no card, or no healthy time to compare with")
    value = float(np.median(now) - np.median(before))
    return StepResult(step, value, "prometheus", query, f"{np.median(before):.0%} before, {np.median(now):.0%} now")


def saturated(evidence: Evidence) -> StepResult:
    """Return the share of the incident's scrapes in which the service itself was degraded since its card is full."""
    step, query = "gpu.saturated", f'{gpu.DEGRADED}{{reason="gpu_saturated"}}'
    found = [one for one in evidence.get(gpu.DEGRADED) or () if one.labels.get("reason") == "gpu_saturated"]
    values = np.concatenate([_inside(one, _late(evidence)) for one in found] or [np.zeros(0)])
    if not len(values):
        return StepResult(step, None, "prometheus", query, "no service tells whether it is degraded")
    value = float(np.mean(values))
    return StepResult(
        step, value, "prometheus", query, f"in {value:.0%} of the scrapes the CPU's model answered for it"
    )


def free_share(evidence: Evidence) -> StepResult:
    """Return the free share of the memory of the card that has least."""
    return _middle(evidence, "gpu.free_share", gpu.free_share(evidence), gpu.MEMORY_FREE, "of its memory is free")


def other_share(evidence: Evidence) -> StepResult:
    """Return the share of a card's memory that processes beside the service hold; 0 where only the service is there."""
    series = gpu.held_share(evidence, "other")
    if series is None and gpu.free_share(evidence) is not None and evidence.get(gpu.PROCESS_MEMORY):
        return StepResult("gpu.other_share", 0.0, "prometheus", gpu.PROCESS_MEMORY, "nobody else is on the card")
    return _middle(evidence, "gpu.other_share", series, gpu.PROCESS_MEMORY, "of a card is held by others")


def other_growth(evidence: Evidence) -> StepResult:
    """Return by which share of a card's memory the others hold more than before the incident."""
    step, query, series = "gpu.other_growth", gpu.PROCESS_MEMORY, gpu.held_share(evidence, "other")
    now = _inside(series, _late(evidence))
    if not len(now):
        return StepResult(step, None, "prometheus", query, "nobody else is seen on a card")
    before = _inside(series, evidence.window.baseline)
    usual = float(np.median(before)) if len(before) else 0.0
    value = float(np.median(now)) - usual
    return StepResult(step, value, "prometheus", query, f"{usual:.0%} of a card before, {usual + value:.0%} now")


def other_program(evidence: Evidence) -> StepResult:
    """Return which program beside the service holds most memory of a card."""
    step, query = "gpu.other_program", gpu.PROCESS_MEMORY
    held: list[tuple[float, str]] = []
    for one in evidence.get(query) or ():
        values = _inside(one, _late(evidence))
        if one.labels.get("owner") == "other" and len(values):
            said = f"{one.labels.get('process', '')} on GPU {one.labels.get('gpu', '')}"
            held.append((float(np.median(values)), said))
    if not held:
        return StepResult(step, None, "prometheus", query, "nobody else is seen on a card")
    most, program = max(held)
    return StepResult(step, program, "prometheus", query, f"{program} holds {most / 2**30:.1f} GiB")


def spoiled_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident's accepted requests that failed, or were answered without the model."""
    step, query = "gpu.spoiled_share", f'{signals.REQUESTS}{{outcome=~"error|degraded"}} over all but the refused'
    span, known = evidence.window.incident, evidence.get(signals.REQUESTS) or ()
    every = signals.increase([one for one in known if one.labels.get("outcome") != "refused"], *span)
    bad = signals.increase([one for one in known if one.labels.get("outcome") in {"error", "degraded"}], *span)
    if every <= 0:
        return StepResult(step, None, "prometheus", query, "no request in the incident")
    return StepResult(step, bad / every, "prometheus", query, f"{bad:.0f} of {every:.0f} requests")


def _growth(evidence: Evidence) -> tuple[Series, float, float] | None:
    """Return the service's share of a card's memory since the onset, its pace a second, and how long that is."""
    own = gpu.held_share(evidence, "own")
    begin, end = evidence.window.incident
    if own is None:
        return None
    mask = (own.times >= begin) & (own.times <= end)
    times, values = own.times[mask], own.values[mask]
    if len(times) < _PIECES or times[-1] - times[0] < _LEAST_GROWTH_SECONDS:
        return None
    pace = float(np.polyfit(times - times[0], values, 1)[0])
    return Series({}, times, values), pace, float(times[-1] - times[0])


def minutes_left(evidence: Evidence) -> StepResult:
    """Return in how many minutes the service's growth has taken all that is free on a card; 1e6 where nothing grows."""
    step, query, free = "gpu.minutes_left", gpu.PROCESS_MEMORY, gpu.free_share(evidence)
    found, left = _growth(evidence), _inside(free, _late(evidence))
    if found is None or not len(left):
        return StepResult(step, None, "prometheus", query, "no card, or too short a time to tell")
    pace = found[1]
    value = min(1e6, float(left[-1]) / pace / 60.0) if pace > 0 else 1e6
    detail = f"{pace * 60:.1%} of a card a minute; {left[-1]:.0%} is free"
    return StepResult(step, value, "prometheus", query, detail)


def growing_share(evidence: Evidence) -> StepResult:
    """Return in which share of the incident's sixths the service's memory on a card grew: a step grows in one."""
    step, query, found = "gpu.growing_share", gpu.PROCESS_MEMORY, _growth(evidence)
    if found is None:
        return StepResult(step, None, "prometheus", query, "no card, or too short a time to tell")
    series, pace, length = found
    edges = series.times[0] + np.linspace(0.0, length, _PIECES + 1)
    at_edges = np.interp(edges, series.times, series.values)
    # A piece counts when it grew by a quarter of the mean pace or more; a card that does not grow has none.
    grew = np.diff(at_edges) > max(0.25 * pace * length / _PIECES, 1e-6)
    value = float(grew.mean())
    return StepResult(step, value, "prometheus", query, f"in {int(grew.sum())} of {_PIECES} pieces of the incident")


def _last(series: Iterable[Series], span: tuple[float, float]) -> dict[str, float]:
    """Return the last value of each kernel."""
    found = {}
    for one in series:
        values = _inside(one, span)
        if len(values):
            found[one.labels.get("kernel", "")] = float(values[-1])
    return found


def slower_kernels(evidence: Evidence) -> StepResult:
    """Return how many kernels of the canary are slower than their baseline allows."""
    step, query = "gpu.slower_kernels", gpu.KERNEL_NAMED
    found = _last(evidence.get(query) or (), _late(evidence))
    if not found:
        return StepResult(step, None, "prometheus", query, "no kernel is timed, or the baseline is being learned")
    value = float(sum(found.values()))
    return StepResult(step, value, "prometheus", query, f"{value:.0f} of {len(found)} kernels")


def slowest_kernel(evidence: Evidence) -> StepResult:
    """Return which of the kernels that got slower is furthest from its baseline."""
    step, query = "gpu.slowest_kernel", gpu.KERNEL_SLOWDOWN
    named = _last(evidence.get(gpu.KERNEL_NAMED) or (), _late(evidence))
    ratios = _last(evidence.get(query) or (), _late(evidence))
    slow = {kernel: ratios[kernel] for kernel, state in named.items() if state > 0 and kernel in ratios}
    if not slow:
        return StepResult(step, None, "prometheus", query, "no kernel is slower than its baseline allows")
    kernel = max(slow, key=lambda name: (slow[name], name))
    return StepResult(step, kernel, "prometheus", query, f"{kernel} takes {slow[kernel]:.2f} times its baseline")


def common_ratio(evidence: Evidence) -> StepResult:
    """Return what all kernels together slowed down by: the machine or its clock, no kernel."""
    step, query = "gpu.common_ratio", gpu.KERNEL_COMMON
    values = np.concatenate([_inside(one, _late(evidence)) for one in evidence.get(query) or ()] or [np.zeros(0)])
    if not len(values):
        return StepResult(step, None, "prometheus", query, "no kernel is timed, or the baseline is being learned")
    value = float(np.median(values))
    return StepResult(step, value, "prometheus", query, f"all kernels together take {value:.2f} times their baseline")


def cpu_ratio(evidence: Evidence) -> StepResult:
    """Return the CPU time of a request of the incident over that of one before: a kernel of a GPU leaves it flat."""
    step, query = "gpu.cpu_ratio", f"rate({signals.CPU}[1m]) / rate({signals.REQUESTS}[1m])"
    each = []
    for span in (evidence.window.incident, evidence.window.baseline):
        requests = signals.increase(evidence.get(signals.REQUESTS) or (), *span)
        cpu = signals.increase(evidence.get(signals.CPU) or (), *span)
        each.append(cpu / requests if requests >= _LEAST_REQUESTS else 0.0)
    now, before = each
    if not now or not before:
        return StepResult(step, None, "prometheus", query, "too few requests, or no healthy time to compare with")
    detail = f"{before * 1000:.1f} ms of CPU a request before, {now * 1000:.1f} ms now"
    return StepResult(step, now / before, "prometheus", query, detail)
