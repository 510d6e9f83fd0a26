"""The decisive signals over time, small enough to lie in a report: what was usual, what it became, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from runbooks.evidence import Evidence
from runbooks.impact import iso
from runbooks.onset import BIN_SECONDS, Signal, watched
from runbooks.rows import Floats

__all__ = ["MOST_PLOTS", "decisive_plots"]

# Six of 180 bins are some 12 kB of JSON.
MOST_PLOTS: Final = 6
MOST_BINS: Final = 180
# The P95 of fewer requests is that of chance.
LEAST_REQUESTS: Final = 5


def decisive_plots(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the signals that moved most, the one that dates the incident first.

    Returns:
        `signal`, `source`, `unit` (seconds or empty), `from` (of the first bin), `bin_s`, and `values`, one a bin, null
        where nothing is known.
    """
    found = [(_moved(evidence, one), one, unit) for one, unit in _signals(evidence)]
    told = [item for item in found if item[0] >= 1.0]
    told.sort(key=lambda item: (item[1].name != evidence.window.signal, -item[0]))
    return [_plot(signal, unit) for _, signal, unit in told[:MOST_PLOTS]]


def _signals(evidence: Evidence) -> Iterator[tuple[Signal, str]]:
    for signal in watched(evidence):
        yield signal, ""
    rows, window = evidence.rows, evidence.window
    if rows is None or not len(rows):
        return
    edges = np.append(np.arange(window.since, window.until, BIN_SECONDS), window.until)
    place = np.searchsorted(edges, rows.end_s, side="right") - 1
    values: Floats = np.full(len(edges) - 1, np.nan)
    rates: Floats = np.zeros(len(edges) - 1)
    for at in np.unique(place[(place >= 0) & (place < len(values))]):
        inside = rows.duration_s[place == at]
        rates[at] = len(inside) / max(float(edges[at + 1] - edges[at]), 0.1)
        if len(inside) >= LEAST_REQUESTS:
            values[at] = np.quantile(inside, 0.95)
    known = values[~np.isnan(values)]
    usual_s = float(np.median(known)) if len(known) else 0.0
    usual_rate = float(np.median(rates[rates > 0])) if rates.any() else 0.0
    yield Signal("P95 of requests", edges, values, max(0.025, usual_s), "ring"), "s"
    yield Signal("requests a second", edges, rates, max(1.0, usual_rate / 2), "ring"), ""


def _moved(evidence: Evidence, signal: Signal) -> float:
    """Return by how many of its smallest effects a signal left its usual level in the incident."""
    (since, until), begin = evidence.window.incident, evidence.window.baseline[0]
    inside = (signal.edges[1:] > since) & (signal.edges[:-1] < until) & ~np.isnan(signal.values)
    before = (signal.edges[:-1] >= begin) & (signal.edges[1:] <= since) & ~np.isnan(signal.values)
    if not inside.any() or not before.any():
        return 0.0
    return float(abs(np.mean(signal.values[inside]) - np.median(signal.values[before])) / signal.effect)


def _plot(signal: Signal, unit: str) -> dict[str, Any]:
    values = signal.values[-MOST_BINS:]
    return {
        "signal": signal.name,
        "source": signal.source,
        "unit": unit,
        "from": iso(float(signal.edges[-1 - len(values)])),
        "bin_s": BIN_SECONDS,
        "values": [None if np.isnan(one) else float(f"{one:.4g}") for one in values],
    }
