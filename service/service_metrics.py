"""The service's own few series (job `service`): which build, which phase, what the recorder could not write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.backend import Calls
from service.breaker import STATES
from service.lifecycle import PHASES
from service.triton.transport import REASONS

__all__ = ["Snapshot", "render"]

_LOSS_REASONS = 64
FALLBACK_REASONS = ("breaker_open", "late", *REASONS)


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
        calls: How calls to a model in another process went; None when it is in this one.
    """

    version: str
    commit: str
    model: str
    config: str
    phase: str
    loss: Mapping[str, int]
    calls: Calls | None = None


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
        if now.calls is not None:
            yield from _calls(now.calls)


def _calls(calls: Calls) -> Iterable[Metric]:
    """Return the series of a model that is asked in another process."""
    states = GaugeMetricFamily(
        "model_breaker_state",
        "1 for the state of the circuit breaker before Triton, 0 for the others.",
        labels=["state"],
    )
    for state in STATES:
        states.add_metric([state], float(state == calls.breaker))
    yield states
    yield CounterMetricFamily(
        "model_breaker_opened", "Times that the circuit breaker before Triton opened.", calls.opened
    )
    unanswered = CounterMetricFamily(
        "model_fallback",
        "Calls that the model in process answered in Triton's place, by what was wrong with Triton.",
        labels=["reason"],
    )
    for reason in FALLBACK_REASONS:
        unanswered.add_metric([reason], calls.unanswered.get(reason, 0))
    yield unanswered


def render(snapshot: Snapshot) -> bytes:
    """Return the exposition in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(lambda: snapshot))
    return generate_latest(registry)
