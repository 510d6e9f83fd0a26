"""Reads counters from a /metrics page: sums over labels, by name."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from inferdeck.bench.variants import HISTOGRAMS, REQUESTS_SAMPLE, Variant
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get

__all__ = ["exporter_counts", "metric_page", "peer_counts", "sum_samples"]

ROWS_READ = "telemetry_rows_read_total"
TRACES_KEPT = "telemetry_traces_kept_total"
# whatever of these grows is a request that we did not keep
LOSSES = ("telemetry_rows_lost_total", "telemetry_requests_unrecorded_total", "telemetry_spans_dropped_total")


def sum_samples(text: str, name: str, labels: Mapping[str, str] | None = None) -> float:
    """Return the sum of a sample's values over all labels.

    Args:
        text: A Prometheus text page.
        name: Name of the sample, such as `x_total` or `x_count`.
        labels: Only samples that bear these.
    """
    wanted = (labels or {}).items()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and wanted <= sample.labels.items()
    )


def metric_page(url: str) -> str:
    """Return the /metrics page of a server.

    Args:
        url: Its base URL.

    Raises:
        CannotRun: If it does not answer 200.
    """
    try:
        status, body = get(f"{url}/metrics", 15.0)
    except Unreachable as error:
        raise CannotRun(f"no metrics from {url}: {error}") from error
    if status != 200:
        raise CannotRun(f"{url}/metrics answered {status}")
    return body.decode()


def peer_counts(url: str, variant: Variant) -> dict[str, float]:
    """Return what the peer's own counters say, for the claims of *variant*."""
    if not variant.counter:
        return {}
    page = metric_page(url)
    found = {REQUESTS_SAMPLE[0]: sum_samples(page, *REQUESTS_SAMPLE)}
    if variant.histograms:
        found |= {name: sum_samples(page, f"{name}_count") for name in HISTOGRAMS}
    return found


def exporter_counts(url: str) -> dict[str, float]:
    """Return what our exporter counts: rows read and lost, traces kept, and those of them kept by chance alone.

    Args:
        url: Its base URL; asking makes it read what is there.
    """
    page = metric_page(url)
    return {
        "rows_read": sum_samples(page, ROWS_READ),
        "rows_lost": sum(sum_samples(page, name) for name in LOSSES),
        "kept": sum_samples(page, TRACES_KEPT),
        "kept_by_chance": sum_samples(page, TRACES_KEPT, {"reason": "random"}),
    }
