"""All that a diagnosis may look at: the window, its baseline, what the sources said; steps read nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from runbooks.rows import Floats, Rows
from runbooks.slowness import slow_mask

__all__ = ["Evidence", "Series", "StepResult", "Window"]


@dataclass(frozen=True)
class Window:
    """The incident's time and the healthy time that it is compared with; unix seconds.

    Attributes:
        since: Start of what was looked at.
        until: End of what was looked at: the alert's time, the time asked for, or now.
        onset: Start of the incident; None when nothing changed.
        ended: End of the incident; equal to `until` while it goes on.
        signal: What the onset was read from.
        known: First time of which anything is known; nothing before it counts as healthy.
    """

    since: float
    until: float
    onset: float | None = None
    ended: float | None = None
    signal: str = ""
    known: float = 0.0

    # Without a change the last minute is judged: the shortest window of the shipped rules.
    LAST_SECONDS = 60.0
    # Bins of the onset are 5 s wide, so the healthy time ends one bin before it.
    MARGIN_SECONDS = 5.0

    @property
    def incident(self) -> tuple[float, float]:
        """Start and end of the incident, or of the last minute when nothing changed."""
        start = self.onset
        if start is None:
            # What nothing is known of dilutes every rate: a service of ten seconds is judged by those.
            start = min(max(self.since, self.known, self.until - self.LAST_SECONDS), self.until)
        return start, self.ended if self.ended is not None else self.until

    @property
    def baseline(self) -> tuple[float, float]:
        """Start and end of the time before the incident."""
        begin = max(self.since, self.known)
        return begin, max(begin, self.incident[0] - self.MARGIN_SECONDS)

    @property
    def going_on(self) -> bool:
        """Whether the incident reaches the end of what was looked at."""
        return self.onset is not None and self.incident[1] >= self.until - 2 * self.MARGIN_SECONDS


@dataclass(frozen=True)
class Series:
    """One time series as Prometheus gave it.

    Attributes:
        labels: Labels without the name.
        times: Unix seconds, ascending, shape (n,).
        values: Shape (n,).
    """

    labels: Mapping[str, str]
    times: Floats
    values: Floats


@dataclass(frozen=True)
class Evidence:
    """What is known about one incident.

    Attributes:
        window: Incident and baseline.
        series: Query -> its series; None when Prometheus could not be asked at all.
        rows: Requests; None when there are none to read.
        clock_s: Time of collecting, unix seconds: owners are alive or not as of then.
    """

    window: Window
    series: Mapping[str, tuple[Series, ...]] | None = None
    rows: Rows | None = None
    clock_s: float = 0.0
    _cache: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    def at(self, window: Window) -> Evidence:
        """Return the same evidence with another window."""
        return replace(self, window=window, _cache={})

    def get(self, query: str) -> tuple[Series, ...] | None:
        """Return the series of a query; None when Prometheus is missing or has none of it."""
        return None if self.series is None else (self.series.get(query) or None)

    def slow(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows are slow for their length class; empty without rows."""
        if self.rows is None:
            return np.zeros(0, dtype=bool)
        # Half of the steps ask for it, and it does not change with the step.
        if "slow" not in self._cache:
            self._cache["slow"] = slow_mask(self.rows, self.window.baseline)
        return np.asarray(self._cache["slow"])


@dataclass(frozen=True)
class StepResult:
    """What one step measured, and how the page judges it.

    Attributes:
        step: "topic.function".
        value: What was measured; None when it cannot be seen.
        source: prometheus, ring, health...
        query: How to see it oneself.
        detail: One plain sentence.
        expected: The page's expectation, e.g. "> 0.05".
        holds: Whether the value meets it; None when it cannot be seen.
    """

    step: str
    value: float | str | bool | None
    source: str
    query: str = ""
    detail: str = ""
    expected: str = ""
    holds: bool | None = None
