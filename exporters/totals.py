"""Cumulative values, held as whole numbers so that adding is exact.

After a kill the exporter reads some rows a second time and must arrive at the very same totals: a sum of floats depends
on its order, and one that comes out smaller by a bit looks like a counter reset to Prometheus. Seconds and ratios are
therefore kept in billionths.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from exporters.names import METRICS, OTHER, Metric

__all__ = ["Histogram", "Labels", "Totals", "scale"]

Labels = tuple[str, ...]

_BILLION: Final = 1_000_000_000


def scale(metric: Metric) -> int:
    """Return how many steps of the stored whole number make one unit of *metric*."""
    return _BILLION if metric.unit in ("seconds", "ratio") else 1


@dataclass
class Histogram:
    """Counts per bucket (the last one is +Inf; not cumulative over buckets) and the sum, in steps of `scale`."""

    counts: list[int]
    total: int = 0

    def add(self, counts: Sequence[int], total: int) -> None:
        """Add counts of the same buckets, and their sum."""
        if len(counts) != len(self.counts):
            raise ValueError(f"{len(counts)} counts for a histogram of {len(self.counts)} buckets")
        self.counts = list(map(operator.add, self.counts, counts))
        self.total += total


@dataclass
class Totals:
    """Counters and histograms by metric name and label values (in the order of the metric's labels).

    Bounded: label values beyond a metric's limit are added to "(other)".
    """

    counters: dict[str, dict[Labels, int]] = field(default_factory=dict)
    histograms: dict[str, dict[Labels, Histogram]] = field(default_factory=dict)

    @classmethod
    def at_zero(cls) -> Totals:
        """Return totals in which every closed set of label values exists and is 0."""
        totals = cls()
        for metric in METRICS.values():
            if metric.job != "inferdeck-exporter" or metric.kind == "gauge" or not all(metric.labels.values()):
                continue
            # A series that first appears at 1 shows no rise to Prometheus: its first error would never alert.
            for labels in product(*metric.labels.values()):
                if metric.kind == "counter":
                    totals.add(metric.name, labels, 0)
                else:
                    totals.observe(metric.name, labels, [0] * (len(metric.buckets) + 1), 0)
        return totals

    def add(self, name: str, labels: Labels, amount: int) -> None:
        """Add to a counter; *amount* in steps of `scale`."""
        series = self.counters.setdefault(name, {})
        key = _bounded(METRICS[name], labels, series)
        series[key] = series.get(key, 0) + int(amount)

    def observe(self, name: str, labels: Labels, counts: Sequence[int], total: int) -> None:
        """Add observations to a histogram.

        Args:
            name: A histogram of `METRICS`.
            labels: Label values in the metric's order.
            counts: Observations per bucket, the one above the last bound included.
            total: Sum of the observed values, in steps of `scale`.
        """
        series = self.histograms.setdefault(name, {})
        key = _bounded(METRICS[name], labels, series)
        found = series.get(key)
        if found is None:
            found = series[key] = Histogram([0] * (len(METRICS[name].buckets) + 1))
        found.add(counts, int(total))

    def merge(self, other: Totals) -> None:
        """Add all of *other*."""
        for name, counters in other.counters.items():
            for labels, amount in counters.items():
                self.add(name, labels, amount)
        for name, histograms in other.histograms.items():
            for labels, histogram in histograms.items():
                self.observe(name, labels, histogram.counts, histogram.total)

    def since(self, earlier: Totals) -> Totals:
        """Return what was added after *earlier*; a value that fell counts as nothing added."""
        grown = Totals()
        for name, counters in self.counters.items():
            before = earlier.counters.get(name, {})
            for labels, amount in counters.items():
                grown.add(name, labels, max(0, amount - before.get(labels, 0)))
        for name, histograms in self.histograms.items():
            earlier_ones = earlier.histograms.get(name, {})
            for labels, now in histograms.items():
                old = earlier_ones.get(labels) or Histogram([0] * len(now.counts))
                # One page is read whole (it has a CRC), so that a fall means another counter, not a torn read.
                counts = [max(0, a - b) for a, b in zip(now.counts, old.counts, strict=True)]
                grown.observe(name, labels, counts, max(0, now.total - old.total))
        return grown

    def value(self, name: str, *labels: str) -> float:
        """Return a counter in its unit; 0 when it was never added to."""
        return self.counters.get(name, {}).get(labels, 0) / scale(METRICS[name])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form that `from_json` reads."""
        return {
            "counters": {
                name: [[*key, value] for key, value in series.items()] for name, series in self.counters.items()
            },
            "histograms": {
                name: {
                    "bounds": list(METRICS[name].buckets),
                    "series": [[list(key), found.counts, found.total] for key, found in series.items()],
                }
                for name, series in self.histograms.items()
            },
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Totals:
        """Return the totals that `to_json` wrote; metrics that no longer exist, or have other bounds, are left out.

        Raises:
            KeyError, TypeError, ValueError: If it is not what `to_json` writes.
        """
        totals = cls()
        for name, rows in found["counters"].items():
            if name in METRICS and METRICS[name].kind == "counter":
                for *labels, amount in rows:
                    if len(labels) == len(METRICS[name].labels):
                        totals.add(name, tuple(map(str, labels)), int(amount))
        for name, entry in found["histograms"].items():
            if name not in METRICS or list(METRICS[name].buckets) != entry["bounds"]:
                continue
            for labels, counts, total in entry["series"]:
                if len(labels) != len(METRICS[name].labels):
                    continue
                totals.observe(name, tuple(map(str, labels)), [int(count) for count in counts], int(total))
        return totals


def _bounded(metric: Metric, labels: Labels, series: Mapping[Labels, object]) -> Labels:
    """Return *labels* with each value that is new and over its label's limit replaced by "(other)"."""
    if labels in series or not metric.limits:
        return labels
    kept = []
    for position, (label, value) in enumerate(zip(metric.labels, labels, strict=True)):
        limit = metric.limits.get(label)
        if limit is not None and value not in metric.labels[label]:
            known = {key[position] for key in series}
            if value not in known and len(known - {OTHER}) >= limit:
                value = OTHER  # noqa: PLW2901 - the replaced value is what the loop is for
        kept.append(value)
    return tuple(kept)
