"""What triage asks Prometheus about cards and kernels, and the levels at which they leave what is usual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from runbooks.evidence import Evidence, Series

__all__ = [
    "BUSY_BOUND",
    "CARD_STATE",
    "DEGRADED",
    "FREE_BOUND",
    "GPU_QUERIES",
    "KERNEL_COMMON",
    "KERNEL_NAMED",
    "KERNEL_SLOWDOWN",
    "LOST_STATES",
    "MEMORY_FREE",
    "MEMORY_SIZE",
    "PROCESS_MEMORY",
    "UTILIZATION",
    "busiest",
    "free_share",
    "gpu_levels",
    "held_share",
    "lost",
]

CARD_STATE: Final = "gpu_card_state"
UTILIZATION: Final = "gpu_utilization_ratio"
MEMORY_SIZE: Final = "gpu_memory_size_bytes"
MEMORY_FREE: Final = "gpu_memory_free_bytes"
PROCESS_MEMORY: Final = "gpu_process_memory_bytes"
DEGRADED: Final = "model_degraded_state"
KERNEL_SLOWDOWN: Final = "model_kernel_slowdown_ratio"
KERNEL_NAMED: Final = "model_kernel_regression_state"
KERNEL_COMMON: Final = "model_kernel_common_ratio"

GPU_QUERIES: Final = (
    CARD_STATE,
    UTILIZATION,
    MEMORY_SIZE,
    MEMORY_FREE,
    PROCESS_MEMORY,
    DEGRADED,
    KERNEL_SLOWDOWN,
    KERNEL_NAMED,
    KERNEL_COMMON,
)

# As in alerts/catalogue/gpu_*.yaml.
LOST_STATES: Final = frozenset({"lost", "reset_required", "driver_gone", "silent"})
BUSY_BOUND: Final = 0.95
FREE_BOUND: Final = 0.02
# A twentieth of a card is no allocator's coming and going.
_STEP_SHARE: Final = 0.05


def _over_time(series: Iterable[Series], pick: np.ufunc) -> Series | None:
    """Return one value for each time at which any of the series is known."""
    found: dict[float, float] = {}
    for one in series:
        for moment, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            found[moment] = float(pick(found[moment], value)) if moment in found else value
    if not found:
        return None
    times = np.array(sorted(found))
    return Series({}, times, np.array([found[moment] for moment in times.tolist()]))


def lost(evidence: Evidence) -> Series | None:
    """Return how many cards do not answer; None where no card is known.

    A card shows its present state alone, so what is there says that it is so.
    """
    known = evidence.get(CARD_STATE)
    return _over_time(
        (Series(one.labels, one.times, one.values * (one.labels.get("state") in LOST_STATES)) for one in known or ()),
        np.add,
    )


def busiest(evidence: Evidence) -> Series | None:
    """Return the utilisation of the busiest card, 0..1."""
    return _over_time(evidence.get(UTILIZATION) or (), np.maximum)


def _by_card(series: Iterable[Series], sizes: Iterable[Series]) -> Iterator[Series]:
    """Yield each card's series over the size of its memory, at times at which both are known."""
    size = {one.labels.get("gpu"): one for one in sizes}
    for one in series:
        if (whole := size.get(one.labels.get("gpu"))) is not None:
            times, mine, others = np.intersect1d(one.times, whole.times, return_indices=True)
            yield Series(one.labels, times, one.values[mine] / np.maximum(whole.values[others], 1.0))


def free_share(evidence: Evidence) -> Series | None:
    """Return the free share of the memory of the card that has least."""
    return _over_time(_by_card(evidence.get(MEMORY_FREE) or (), evidence.get(MEMORY_SIZE) or ()), np.minimum)


def held_share(evidence: Evidence, owner: str) -> Series | None:
    """Return the share of a card's memory that processes of an owner hold, of the card of which they hold most."""
    cards: dict[str, list[Series]] = {}
    for one in _by_card(
        [one for one in evidence.get(PROCESS_MEMORY) or () if one.labels.get("owner") == owner],
        evidence.get(MEMORY_SIZE) or (),
    ):
        cards.setdefault(one.labels.get("gpu", ""), []).append(one)
    sums = (_over_time(found, np.add) for found in cards.values())
    return _over_time((one for one in sums if one is not None), np.maximum)


def gpu_levels(evidence: Evidence) -> Iterator[tuple[str, Series, float]]:
    """Yield name, values and smallest change that matters of what starts an incident of a card or a kernel."""
    gone, busy, free, own = lost(evidence), busiest(evidence), free_share(evidence), held_share(evidence, "own")
    if gone is not None:
        yield "cards that do not answer", gone, 0.25
    if busy is not None:
        yield "a card is saturated", _flag(busy, busy.values > BUSY_BOUND), 0.5
    if free is not None:
        yield "a card has no memory left", _flag(free, free.values < FREE_BOUND), 0.5
    if own is not None:
        yield "the service's share of a card's memory", own, _STEP_SHARE
    named = _over_time(evidence.get(KERNEL_NAMED) or (), np.add)
    if named is not None:
        yield "kernels that got slower", named, 0.25


def _flag(series: Series, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Series:
    return Series({}, series.times, mask.astype(np.float64))
