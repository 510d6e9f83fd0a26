"""The service's own few series (job `service`): which build, which phase, what the recorder could not write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.artifacts import Fingerprints
from service.backend import Calls
from service.breaker import STATES
from service.canary.metrics import canary_series
from service.canary.versions import CanaryView
from service.degradation.results import EVENTS
from service.degradation.rules import REASONS as DEGRADED_REASONS
from service.degradation.rules import DegradationState
from service.lifecycle import PHASES
from service.memory_sessions import Sessions
from service.replay import ReplayView
from service.replay_metrics import replay_series
from service.scheduler.memory import GateState
from service.token_metrics import token_series
from service.tokens import TokensView
from service.triton.transport import REASONS

__all__ = ["Degraded", "Snapshot", "render"]

_LOSS_REASONS = 64
FALLBACK_REASONS = ("breaker_open", "late", *REASONS)


@dataclass(frozen=True)
class Degraded:
    """What stands in for the model, and the memory in front of it.

    Attributes:
        state: Whether the service is degraded, and how often it was; None before anything is known.
        results: What became of answers that are fetched later, by event.
        gate: The memory of the model's device; None where nobody looks at one.
        sessions: Model sessions of this process.
        peak_bytes: Most that the model's device held since the model was loaded; None where nobody looks or knows.
    """

    state: DegradationState | None = None
    results: Mapping[str, int] = field(default_factory=dict)
    gate: GateState | None = None
    sessions: Sessions = field(default_factory=lambda: Sessions(0, 0))
    peak_bytes: int | None = None


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
        degraded: What stands in for the model.
        canary: The other version of the model.
        replay: What the latest replay of known texts came to.
        fell_back: Whether the model computes on the CPU although a GPU was asked for.
        preprocess: What texts go through in training and here; None before a model is there.
        tokens: Loads of tokenizers, and the texts whose tokens are kept.
    """

    version: str
    commit: str
    model: str
    config: str
    phase: str
    loss: Mapping[str, int]
    calls: Calls | None = None
    degraded: Degraded = field(default_factory=Degraded)
    canary: CanaryView = field(default_factory=CanaryView)
    replay: ReplayView = field(default_factory=lambda: ReplayView({}))
    fell_back: bool = False
    preprocess: Fingerprints | None = None
    tokens: TokensView = field(default_factory=TokensView)


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
        yield GaugeMetricFamily(
            "model_device_fallback_state",
            "1 while the model in process computes on the CPU although a GPU was asked for.",
            float(now.fell_back),
        )
        yield from _degraded(now.degraded)
        yield from canary_series(now.canary)
        yield from replay_series(now.replay)
        yield from token_series(now.tokens)
        if now.preprocess is not None:
            yield _preprocess(now.preprocess)


def _preprocess(found: Fingerprints) -> Metric:
    mismatch = GaugeMetricFamily(
        "data_preprocess_mismatch_state",
        "1 while texts are cleaned or cut otherwise than in the training of the model, 0 while alike; by fingerprints.",
        labels=["trained", "served"],
    )
    mismatch.add_metric(list(found), float(not found.match))
    return mismatch


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


def _degraded(now: Degraded) -> Iterable[Metric]:
    """Return the series of what stands in for the model, and of the memory in front of it."""
    active = GaugeMetricFamily(
        "model_degraded_state", "1 while the CPU's model answers for this reason, 0 otherwise.", labels=["reason"]
    )
    turns = CounterMetricFamily(
        "model_degraded_turns", "Times that the service became degraded, and recovered.", labels=["reason", "turn"]
    )
    for reason in DEGRADED_REASONS:
        active.add_metric([reason], float(now.state is not None and now.state.active[reason]))
        turns.add_metric([reason, "entered"], now.state.entered[reason] if now.state is not None else 0)
        turns.add_metric([reason, "left"], now.state.left[reason] if now.state is not None else 0)
    yield active
    yield turns
    results = CounterMetricFamily(
        "model_results", "What became of answers that are fetched later, by event.", labels=["event"]
    )
    for event in EVENTS:
        results.add_metric([event], now.results.get(event, 0))
    yield results
    for kind, count in (("open", now.sessions.open), ("duplicate", now.sessions.duplicate)):
        yield GaugeMetricFamily(f"model_{kind}_sessions", _SESSIONS[kind], count)
    if now.peak_bytes is not None:
        yield GaugeMetricFamily(
            "model_memory_peak_bytes",
            "Most that was held on the model's device at any look since the model was loaded.",
            now.peak_bytes,
        )
    if now.gate is None:
        return
    yield GaugeMetricFamily(
        "model_memory_known_state",
        "1 while batches are held against the free memory of the model's device; 0: no reading, or nothing measured.",
        float(not now.gate.absent),
    )
    if now.gate.free_bytes is not None:
        yield GaugeMetricFamily("model_memory_free_bytes", "Free memory of the model's device.", now.gate.free_bytes)
    if now.gate.bytes_per_cell is not None:
        yield GaugeMetricFamily(
            "model_memory_cell_bytes", "Most memory that a batch took per cell, learnt.", now.gate.bytes_per_cell
        )


_SESSIONS = {
    "open": "Model sessions that the answering worker holds.",
    "duplicate": "Model sessions of the answering worker beyond the first of each model.",
}


def render(snapshot: Snapshot) -> bytes:
    """Return the exposition in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(lambda: snapshot))
    return generate_latest(registry)
