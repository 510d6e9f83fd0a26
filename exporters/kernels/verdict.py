"""Whether a kernel got slower: effect size first, then whether it is more than the times move by themselves.

Of each window the fastest run is looked at: whatever disturbs a run makes it longer, and a kernel that got slower is so
in its fastest run too. The 10th percentile, which was enough while other programs computed (facts, feasibility 4.1),
named a kernel that reads a large table when they emptied the caches: 1.4 to 2.8 times its baseline, nothing changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from exporters.kernels.baseline import Baseline

__all__ = ["LIVE_RATIO", "REPLAYED_RATIO", "Judged", "common_ratio", "fastest", "judge"]

# Facts, feasibility 4.1: an injected 1.4 is named by 1.25 in two windows in a row, while 1.5 would miss it.
LIVE_RATIO: Final = 1.25
# A GPU's own clocks are steadier: the case told is 1.23 (requirements A3), which 1.25 would miss.
REPLAYED_RATIO: Final = 1.15
# Times are told in steps: below ten of them a step more is a tenth.
_FEWEST_STEPS: Final = 10
# So many standard deviations of the baseline's own windows a window must be away: 1 in 30,000 if they were normal.
_DEVIATIONS: Final = 4.0
# No baseline is steadier than this: eight windows may look alike by chance.
_LEAST_SPREAD: Final = 0.01
# With fewer kernels their median is one of them, and a slow one would hide behind itself.
_FEWEST_FOR_COMMON: Final = 5
_LEAST_COMMON: Final = 0.9


@dataclass(frozen=True)
class Judged:
    """One kernel against its baseline.

    Attributes:
        ratio: Time over baseline, less what all kernels slowed down by.
        lowest_ratio: What the ratio is at least, given how much the baseline's windows differ.
        slower: Whether this window alone is too slow.
    """

    ratio: float
    lowest_ratio: float
    slower: bool


def fastest(times: Sequence[float]) -> float:
    """Return the time of the fastest run.

    Args:
        times: Seconds, one at least.
    """
    return min(times)


def _judgeable(baseline: Baseline, resolution_seconds: float) -> dict[str, float]:
    """Return the kernels whose time is long enough to be compared, with the median of their baseline, seconds."""
    windows = baseline.windows
    found = {kernel: median(times) for kernel, times in baseline.fastest_seconds.items() if len(times) == windows}
    return {kernel: time for kernel, time in found.items() if time >= _FEWEST_STEPS * resolution_seconds}


def _common(known: Mapping[str, float], times: Mapping[str, float]) -> float | None:
    """Return the median ratio of times to known ones; None with too few of them."""
    ratios = [times[kernel] / time for kernel, time in known.items() if kernel in times]
    return median(ratios) if len(ratios) >= _FEWEST_FOR_COMMON else None


def _deviations(baseline: Baseline, known: Mapping[str, float]) -> dict[str, float]:
    """Return how much each kernel moves by itself in the baseline, as a standard deviation of logarithms."""
    logs: dict[str, list[float]] = {kernel: [] for kernel in known}
    for place in range(baseline.windows):
        window = {kernel: baseline.fastest_seconds[kernel][place] for kernel in known}
        common = _common(known, window) or 1.0
        for kernel, time in window.items():
            logs[kernel].append(abs(math.log(max(time, 1e-12) / known[kernel] / common)))
    # Median absolute deviation, scaled to a normal's standard deviation: one odd window must not widen it.
    return {kernel: max(1.4826 * median(values), _LEAST_SPREAD) for kernel, values in logs.items()}


def common_ratio(baseline: Baseline, current: Mapping[str, float], resolution_seconds: float) -> float | None:
    """Return what the kernels slowed down by together: the median of their ratios; None with too few of them.

    Args:
        baseline: The baseline.
        current: Kernel -> fastest run of the window, seconds.
        resolution_seconds: Smallest difference that the source can tell.
    """
    return _common(_judgeable(baseline, resolution_seconds), current)


def judge(
    baseline: Baseline, current: Mapping[str, float], *, resolution_seconds: float, threshold_ratio: float
) -> dict[str, Judged]:
    """Return every kernel that can be compared, against its baseline.

    Args:
        baseline: A complete baseline.
        current: Kernel -> fastest run of the window, seconds.
        resolution_seconds: Smallest difference that the source can tell.
        threshold_ratio: From which ratio on a kernel is slower.
    """
    known = _judgeable(baseline, resolution_seconds)
    # A card's clock moves by some percent; a machine that is much faster makes no kernel slow that stayed as it was.
    common = max(_LEAST_COMMON, _common(known, current) or 1.0)
    deviations = _deviations(baseline, known)
    found = {}
    for kernel in known.keys() & current.keys():
        ratio = current[kernel] / known[kernel] / common
        lowest = ratio * math.exp(-_DEVIATIONS * deviations[kernel])
        found[kernel] = Judged(ratio, lowest, ratio >= threshold_ratio and lowest > 1.0)
    return found
