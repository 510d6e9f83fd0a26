"""The service's own few series (job `service`): which build, which phase, what the recorder could not write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.lifecycle import PHASES

__all__ = ["Snapshot", "render"]

_LOSS_REASONS = 64


@dataclass(frozen=True)
class Snapshot:
    """What is shown.

    Attributes:
        version: Version of the service.
        commit: Commit of the build.
        model: Version of the loaded model, empty before it is there.
        config: Fingerprint of the settings.
        phase: Where the service stands.
        loss: Requests, or parts of them, that the recorder could not write, by reason.
    """

    version: str
    commit: str
    model: str
    config: str
    phase: str
    loss: Mapping[str, int]


class _Once(Collector):
    def __init__(self, read: Callable[[], Snapshot]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        now = self._read()
        build = GaugeMetricFamily(
            "model_build_info",
            "Always 1; which build, commit, model and configuration are running.",
            labels=["version", "commit", "model", "config"],
        )
        build.add_metric([now.version, now.commit, now.model, now.config], 1)
        yield build
        phases = GaugeMetricFamily(
            "runtime_phase", "1 for the phase that the service is in, 0 for the others.", labels=["phase"]
        )
        for phase in PHASES:
            phases.add_metric([phase], float(phase == now.phase))
        yield phases
        # Also here, not only in the exporter: a recorder without a file has no other way to say that it has none.
        loss = CounterMetricFamily(
            "telemetry_requests_unrecorded",
            "Requests, or parts of them, that the recorder of the answering worker could not write, by why.",
            labels=["reason"],
        )
        for reason in sorted(now.loss)[:_LOSS_REASONS]:
            loss.add_metric([reason], now.loss[reason])
        yield loss


def render(snapshot: Snapshot) -> bytes:
    """Return the exposition in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(lambda: snapshot))
    return generate_latest(registry)
