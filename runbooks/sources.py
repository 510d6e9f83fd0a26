"""Gather evidence from what sources there are, side by side, within a deadline; say what lacks and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from exporters.lone_folder import SeveralFoldersError, lone_ring_dir, lone_rings_parent
from runbooks import signals
from runbooks.evidence import Evidence, Series, Window
from runbooks.mapping.model import MetricMapping
from runbooks.mapping.source import MappedSource
from runbooks.prometheus_source import PrometheusSource, SourceMissingError
from runbooks.row_source import RowSource
from runbooks.rows import Rows

__all__ = ["LoneRows", "Metrics", "Missing", "Requests", "Sources", "gather"]

_T = TypeVar("_T")

# Half of the 15 s that a triage may take; the other half is for judging on a busy machine.
GATHER_SECONDS: Final = 8.0

COSTS: Final[Mapping[str, str]] = {
    "prometheus": "no scrape targets, no loop lag: a lost exporter cannot be seen, less confidence in the rest",
    "ring": "no single requests: no sessions, no traces, nothing about what differs; less confidence",
}


class Metrics(Protocol):
    """What triage needs of a metric store."""

    def collect(self, queries: tuple[str, ...], since: float, until: float) -> Mapping[str, tuple[Series, ...]]:
        """Return query -> series in [since, until], unix seconds; raises SourceMissingError."""

    def alert_span(self, alert: str, since: float, until: float) -> tuple[float, float] | None:
        """Return first and last time of the alert's last firing, unix seconds; raises SourceMissingError."""


class Requests(Protocol):
    """What triage needs of the recorder."""

    def collect(self, since: float, until: float) -> Rows:
        """Return the requests in [since, until], unix seconds; raises SourceMissingError."""


@dataclass(frozen=True)
class Missing:
    """A source that could not be read: which, why, and what that costs."""

    source: str
    reason: str
    cost: str


@dataclass(frozen=True)
class Sources:
    """Where evidence comes from; each may be absent.

    Attributes:
        prometheus: Metrics.
        rows: Requests.
        mapping: Of a service that has no rows of ours: which of its metrics stand for ours.
    """

    prometheus: Metrics | None = None
    rows: Requests | None = None
    mapping: MetricMapping | None = None

    @classmethod
    def foreign(cls, mapping: MetricMapping, prometheus_url: str, job: str | None = None) -> Sources:
        """Return the one source of a service without our rows; nothing is read yet.

        Args:
            mapping: Which of its metrics stand for ours.
            prometheus_url: Prometheus that scrapes it.
            job: Its scrape job; looked for when absent.
        """
        return cls(MappedSource(prometheus_url, mapping, job), None, mapping)

    @classmethod
    def open(
        cls, ring_dir: Path | None = None, prometheus_url: str | None = None, archive_dir: Path | None = None
    ) -> Sources:
        """Return the sources of a folder of rings, the exporter's archive and a Prometheus; nothing is read yet."""
        return cls(
            PrometheusSource(prometheus_url) if prometheus_url else None,
            RowSource(ring_dir, archive_dir) if ring_dir else None,
        )


class LoneRows:
    """The requests of the only service that records without a stack, looked for anew each time: it may come later.

    Args:
        archive_dir: Folder of the exporter's archive.
        find_ring_dir: Returns the service's folder, or None while there is none.
    """

    def __init__(
        self, archive_dir: Path | None = None, find_ring_dir: Callable[[], Path | None] = lone_ring_dir
    ) -> None:
        self._archive_dir, self._find = archive_dir, find_ring_dir

    def collect(self, since: float, until: float) -> Rows:
        """Return the requests in [since, until], unix seconds.

        Raises:
            SourceMissingError: If there are none to be had, or it is not clear which service is meant.
        """
        try:
            # Without a folder the archive may still know; the parent holds no ring file.
            folder = self._find() or lone_rings_parent()
        except SeveralFoldersError as error:
            raise SourceMissingError(str(error)) from error
        return RowSource(folder, self._archive_dir).collect(since, until)


def gather(
    sources: Sources,
    since: float,
    until: float,
    clock: Callable[[], float] = time.time,
    limit_seconds: float = GATHER_SECONDS,
) -> tuple[Evidence, list[Missing]]:
    """Return the evidence between two times and what could not be had.

    Args:
        sources: Where to look.
        since: Unix seconds.
        until: Unix seconds.
        clock: Wall clock.
        limit_seconds: What is not there by then is missing; its thread ends by its own time limits.
    """
    missing: list[Missing] = []
    pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="triage-source")
    deadline = time.monotonic() + limit_seconds
    metrics: Future[Mapping[str, tuple[Series, ...]]] | None = None
    requests: Future[Rows] | None = None
    if sources.prometheus is not None:
        metrics = pool.submit(sources.prometheus.collect, signals.QUERIES, since, until)
    if sources.rows is not None:
        requests = pool.submit(sources.rows.collect, since, until)
    series = _result("prometheus", metrics, deadline, missing)
    rows = _result("ring", requests, deadline, missing, _absent_rows(sources.mapping))
    # A source past its deadline must not hold the verdict back.
    pool.shutdown(wait=False, cancel_futures=True)
    if series is not None and not any(series.values()):
        missing.append(Missing("prometheus", "it has no data for this time", COSTS["prometheus"]))
        series = None
    return Evidence(Window(since, until), series, rows, clock()), missing


def _absent_rows(mapping: MetricMapping | None) -> str:
    return "not configured" if mapping is None else f"the service writes none; its metrics are read by {mapping.name}"


def _result(
    source: str,
    future: Future[_T] | None,
    deadline: float,
    missing: list[Missing],
    absent: str = "not configured",
) -> _T | None:
    if future is None:
        missing.append(Missing(source, absent, COSTS[source]))
        return None
    try:
        return future.result(timeout=max(deadline - time.monotonic(), 0.0))
    except SourceMissingError as error:
        reason = str(error)
    except TimeoutError:
        reason = "too slow: no answer within the time limit"
    except Exception as error:  # noqa: BLE001 - a damaged source costs that source, never the triage
        reason = f"failed while being read: {type(error).__name__}: {str(error)[:200]}"
    missing.append(Missing(source, reason, COSTS[source]))
    return None
