"""Scrape targets: since when one is down, told apart from a Prometheus that was not scraping at all."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from runbooks.evidence import Series
from runbooks.rows import Floats

__all__ = ["down_at", "down_seconds"]


def down_at(up: Iterable[Series], job: str) -> tuple[Floats, Floats]:
    """Return when Prometheus was scraping, and whether the job had no target that answered then.

    Absent and 0 are both "down", but only at times at which Prometheus has a sample of some target: a Prometheus that
    restarts has none of any. A job that never had a sample gives no times: it is not configured here.

    Args:
        up: All series of `up`.
        job: Job label.

    Returns:
        Times (unix seconds) and 1.0 for down or 0.0, both shape (n,).
    """
    every = [one for one in up if len(one.times)]
    mine = [one for one in every if one.labels.get("job") == job]
    if not mine:
        return np.zeros(0), np.zeros(0)
    times = np.unique(np.concatenate([one.times for one in every]))
    # Before its first sample a target is unknown, not down.
    times = times[times >= min(float(one.times[0]) for one in mine)]
    answered = np.zeros(len(times), dtype=bool)
    for one in mine:
        answered |= np.isin(times, one.times[one.values > 0])
    return times, np.where(answered, 0.0, 1.0)


def down_seconds(up: Iterable[Series], job: str, until: float) -> float | None:
    """Return for how long, up to a time, no target of the job had answered without a break; 0 when one answers.

    Returns:
        Seconds, or None when the job has no samples or Prometheus was not scraping in the half minute before *until*.
    """
    times, down = down_at(up, job)
    times, down = times[times <= until], down[times <= until]
    if not len(times) or times[-1] < until - 30.0:
        return None
    if not down[-1]:
        return 0.0
    answered = np.nonzero(down == 0.0)[0]
    first = times[answered[-1] + 1] if len(answered) else times[0]
    return float(until - first)
