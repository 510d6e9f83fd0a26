"""The arithmetic of the overhead bench: windows, their bare neighbours, medians and quartiles.

Servers stay up while windows go bare, a, bare, b, bare ...; each window is compared with the mean of the bare windows
right before and after it, so that drift of the machine cancels out. What is reported are medians over rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["MAX_FOREIGN_CORES", "Pair", "Summary", "Window", "pair_up", "quartiles", "ratio", "summarise"]

# Foreign load above this moves the figures by more than the A/A noise of about 3 us (measured with the prototype).
MAX_FOREIGN_CORES = 0.3
# Fewer quiet pairs than this say little; all are used then, and the result says that it is noisy.
LEAST_PAIRS = 4


@dataclass(frozen=True)
class Window:
    """One window of load on one server.

    Attributes:
        variant: Whose server.
        requests: Answered requests.
        rps: Answered requests a second.
        cpu_us: CPU microseconds of the server's threads per request, flush of spans included.
        foreign_cores: Cores busy with what is not ours.
        p99_s: 99th percentile of the time to answer.
        exporter_us: CPU microseconds of our exporter per request; None for peers.
    """

    variant: str
    requests: int
    rps: float
    cpu_us: float
    foreign_cores: float = 0.0
    p99_s: float = 0.0
    exporter_us: float | None = None


@dataclass(frozen=True)
class Pair:
    """A window with its two bare neighbours."""

    window: Window
    before: Window
    after: Window

    @property
    def added_us(self) -> float:
        """Return the CPU microseconds per request over the neighbours' mean."""
        return self.window.cpu_us - (self.before.cpu_us + self.after.cpu_us) / 2

    @property
    def rps_ratio(self) -> float:
        """Return the requests a second over the neighbours' mean."""
        return self.window.rps / ((self.before.rps + self.after.rps) / 2)

    @property
    def foreign_cores(self) -> float:
        """Return the largest foreign load of the three."""
        return max(self.window.foreign_cores, self.before.foreign_cores, self.after.foreign_cores)


@dataclass(frozen=True)
class Summary:
    """One variant over all rounds: medians, and quartiles as (lower, upper).

    Attributes:
        kept: Pairs used.
        dropped: Pairs left out for foreign load.
        noisy: Too few quiet pairs, so that all were used.
    """

    cpu_us: float
    rps: float
    p99_s: float
    added_us: float
    added_us_quartiles: tuple[float, float]
    rps_ratio: float
    rps_ratio_quartiles: tuple[float, float]
    exporter_us: float | None
    kept: int
    dropped: int
    noisy: bool


def pair_up(windows: Sequence[Window], base: str) -> list[Pair]:
    """Give every window that is not *base* its neighbours.

    Args:
        windows: One round in order of time: base, a, base, b, base ...
        base: Name of the variant to compare with.

    Raises:
        ValueError: If a window lacks a base window on either side.
    """
    pairs = []
    for at, window in enumerate(windows):
        if window.variant == base:
            continue
        if not 0 < at < len(windows) - 1 or {windows[at - 1].variant, windows[at + 1].variant} != {base}:
            raise ValueError(f"window {at} ({window.variant}) has no {base} window on both sides")
        pairs.append(Pair(window, windows[at - 1], windows[at + 1]))
    return pairs


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return lower and upper quartile, both the value itself when there is one alone."""
    if len(values) == 1:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return part / whole; None when either is unknown or the whole is not above 0."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def summarise(pairs: Iterable[Pair], max_foreign: float = MAX_FOREIGN_CORES, least: int = LEAST_PAIRS) -> Summary:
    """Reduce one variant's pairs to medians.

    Args:
        pairs: At least one.
        max_foreign: Pairs with more foreign cores than this are left out.
        least: With fewer quiet pairs than this (or than there are), all are used and the summary is noisy.

    Raises:
        ValueError: If there is no pair.
    """
    given = list(pairs)
    if not given:
        raise ValueError("no window to summarise")
    quiet = [pair for pair in given if pair.foreign_cores <= max_foreign]
    noisy = len(quiet) < min(least, len(given))
    used = given if noisy else quiet
    added = [pair.added_us for pair in used]
    ratios = [pair.rps_ratio for pair in used]
    exporter = [pair.window.exporter_us for pair in used if pair.window.exporter_us is not None]
    return Summary(
        cpu_us=statistics.median(pair.window.cpu_us for pair in used),
        rps=statistics.median(pair.window.rps for pair in used),
        p99_s=statistics.median(pair.window.p99_s for pair in used),
        added_us=statistics.median(added),
        added_us_quartiles=quartiles(added),
        rps_ratio=statistics.median(ratios),
        rps_ratio_quartiles=quartiles(ratios),
        exporter_us=statistics.median(exporter) if exporter else None,
        kept=len(used),
        dropped=len(given) - len(used),
        noisy=noisy,
    )
