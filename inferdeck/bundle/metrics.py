"""Prometheus' series of the window as one JSON file, and a source that answers triage's questions from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runbooks.evidence import Series
from runbooks.prometheus_source import PrometheusSource, SourceMissingError
from runbooks.signals import QUERIES

__all__ = ["KeptMetrics", "dump_metrics", "every_query"]

# what fired and when: Prometheus writes it as a series of its own
ALERTS = 'ALERTS{alertstate="firing"}'


def every_query() -> list[str]:
    """Return what is dumped: what triage asks, the alerts, and every metric of ours."""
    from exporters.names import METRICS

    found = list(QUERIES)
    for metric in METRICS.values():
        # a histogram is three families of series; its bare name is none
        suffixes = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        found += [f"{metric.name}{suffix}" for suffix in suffixes]
    return list(dict.fromkeys([*found, ALERTS]))


def dump_metrics(url: str, since: float, until: float, path: Path) -> int:
    """Write the series of a window, sampled as triage asks for them, and return how many.

    Args:
        url: Prometheus' base URL.
        since: Unix seconds.
        until: Unix seconds.
        path: The file.

    Raises:
        SourceMissingError: If Prometheus cannot be asked.
    """
    found = PrometheusSource(url).collect(every_query(), since, until)
    queries = {query: [_to_json(one) for one in series] for query, series in found.items() if series}
    path.write_text(json.dumps({"since": since, "until": until, "queries": queries}), encoding="utf-8")
    return sum(map(len, queries.values()))


def _to_json(series: Series) -> dict[str, Any]:
    # JSON has no infinity, and no step of triage uses one
    finite = np.isfinite(series.values)
    return {
        "labels": dict(series.labels),
        "times": series.times[finite].tolist(),
        "values": series.values[finite].tolist(),
    }


class KeptMetrics:
    """A dump, asked as Prometheus would be.

    Args:
        path: The file.
    """

    name = "prometheus"

    def __init__(self, path: Path) -> None:
        self._path = path

    def collect(self, queries: Iterable[str], since: float, until: float) -> Mapping[str, tuple[Series, ...]]:
        """Return query -> series in [since, until], unix seconds; nothing for what was not asked then.

        Raises:
            SourceMissingError: If there is no dump, or it is damaged.
        """
        # read anew for each question: a dump is some MB, and a triage asks once
        kept = self._read()
        return {query: tuple(self._cut(kept.get(query, ()), since, until)) for query in queries}

    def alert_span(self, alert: str, since: float, until: float) -> tuple[float, float] | None:
        """Return first and last time of the alert's firing, unix seconds."""
        firing = list(self._cut(self._read().get(ALERTS, ()), since, until))
        times = [one.times for one in firing if one.labels.get("alertname") == alert]
        return (float(min(t[0] for t in times)), float(max(t[-1] for t in times))) if times else None

    def _read(self) -> dict[str, Any]:
        try:
            queries = json.loads(self._path.read_text(encoding="utf-8"))["queries"]
        except FileNotFoundError as error:
            raise SourceMissingError(
                "the bundle holds no metrics: Prometheus was not there when it was made"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise SourceMissingError(f"the bundle's metrics cannot be read: {error}") from error
        if not isinstance(queries, dict):
            raise SourceMissingError("the bundle's metrics are no table")
        return queries

    @staticmethod
    def _cut(series: Iterable[Any], since: float, until: float) -> Iterable[Series]:
        for one in series:
            try:
                times, values = np.array(one["times"], dtype=float), np.array(one["values"], dtype=float)
                labels = {str(key): str(value) for key, value in one["labels"].items()}
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise SourceMissingError(f"the bundle's metrics are damaged: {error}") from error
            inside = (times >= since) & (times <= until)
            if times.shape == values.shape and inside.any():
                yield Series(labels, times[inside], values[inside])
