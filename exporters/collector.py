"""Totals and gauges as Prometheus families: an adapter without arithmetic beyond units and running sums."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from exporters.gauges import Gauges
from exporters.names import METRICS, Metric
from exporters.totals import Histogram, Labels, Totals, scale

__all__ = ["Exemplars", "ExporterCollector", "Snapshot", "families", "registry_of"]


class Exemplars:
    """The latest delivered request per length class and bucket of the latency histogram."""

    def __init__(self) -> None:
        # Bounded by length classes x buckets; not saved, since an exemplar of an earlier run helps nobody.
        self._found: dict[tuple[str, int], Exemplar] = {}

    def add(self, bucket: str, seconds: float, trace_id: str, unix_seconds: float) -> None:
        """Remember a request whose spans the collector has accepted."""
        place = bisect_left(METRICS["model_latency_seconds"].buckets, seconds)
        self._found[bucket, place] = Exemplar({"trace_id": trace_id}, seconds, round(unix_seconds, 3))

    def of(self, metric: str, labels: Labels, place: int) -> Exemplar | None:
        """Return the exemplar of one bucket."""
        return self._found.get((labels[0], place)) if metric == "model_latency_seconds" else None


@dataclass(frozen=True)
class Snapshot:
    """What is shown at one scrape."""

    totals: Totals
    gauges: Gauges
    exemplars: Exemplars = field(default_factory=Exemplars)


class ExporterCollector(Collector):
    """Asks for a fresh snapshot at each scrape."""

    def __init__(self, collect: Callable[[], list[Family]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Family]:
        """Return the families."""
        return self._collect()


def registry_of(collect: Callable[[], list[Family]]) -> CollectorRegistry:
    """Return a registry of its own: nothing that other code registers by import gets in.

    Args:
        collect: Returns the families at each scrape.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ExporterCollector(collect))
    return registry


def families(snapshot: Snapshot) -> list[Family]:
    """Return all families of the exporter in the order of `METRICS`; one without a sample is left out."""
    found: list[Family] = []
    for metric in METRICS.values():
        if metric.job != "inferdeck-exporter" or metric.name == "telemetry_series":
            continue
        family = _family(metric, snapshot)
        if family.samples:
            found.append(family)
    # Counted last, itself included: what is shown is what Prometheus will store.
    series = GaugeMetricFamily("telemetry_series", METRICS["telemetry_series"].help)
    series.add_metric([], sum(len(family.samples) for family in found) + 1)
    return [*found, series]


def _family(metric: Metric, snapshot: Snapshot) -> Family:
    """Return one metric with its samples."""
    names = list(metric.labels)
    if metric.kind == "counter":
        counter = CounterMetricFamily(metric.name, metric.help, labels=names)
        for labels, value in sorted(snapshot.totals.counters.get(metric.name, {}).items()):
            # The only place where whole numbers become floats: after all adding is done.
            counter.add_metric(labels, value / scale(metric))
        # What the source itself counts, such as a GPU its memory errors, is shown as it stands.
        for labels, present in sorted(snapshot.gauges.get(metric.name, {}).items()):
            counter.add_metric(labels, present)
        return counter
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=names)
        for labels, found in sorted(snapshot.totals.histograms.get(metric.name, {}).items()):
            buckets = _buckets(metric, labels, found, snapshot.exemplars)
            histogram.add_metric(labels, buckets, found.total / scale(metric))
        return histogram
    gauge = GaugeMetricFamily(metric.name, metric.help, labels=names)
    known: Mapping[Labels, float] = snapshot.gauges.get(metric.name, {})
    for labels, present in sorted(known.items()):
        gauge.add_metric(labels, present)
    return gauge


def _buckets(
    metric: Metric, labels: Labels, histogram: Histogram, exemplars: Exemplars
) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Return the buckets with running sums, as the exposition wants them."""
    running = 0
    buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    for place, (bound, count) in enumerate(zip([*metric.buckets, float("inf")], histogram.counts, strict=True)):
        running += count
        exemplar = exemplars.of(metric.name, labels, place)
        le = "+Inf" if bound == float("inf") else repr(bound)
        buckets.append((le, float(running), exemplar) if exemplar else (le, float(running)))
    return buckets
