"""Metrics about a model behind Triton: of the service that asks it, and of the supervisor that keeps it alive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exporters.metric import Metric

__all__ = ["CANARY_STATES", "EXITS", "FALLBACK_REASONS", "TRITON", "TRITON_SERVER"]

# Held equal to what service/triton/canary.py and service/service_metrics.py show by a test of those.
CANARY_STATES: Final = (
    "starting",
    *("ok", "refused", "timeout", "broken", "stub_dead", "unloaded", "error", "wrong_answer"),
)
FALLBACK_REASONS: Final = (
    "breaker_open",
    "late",
    *("refused", "timeout", "no_connection", "broken", "stub_dead", "unloaded", "error", "wrong_answer"),
)

# Held equal to service/triton/last_exit.py by the same test.
EXITS: Final = ("illegal_memory_access", "out_of_memory", "cuda_error", "signal", "failed", "stopped", "clean")

TRITON: Final = (
    Metric(
        "model_breaker_state",
        "gauge",
        "state",
        "1 for the state of the circuit breaker before Triton, 0 for the others.",
        labels={"state": ("closed", "half_open", "open")},
        source="service",
        job="service",
    ),
    Metric(
        "model_breaker_opened_total",
        "counter",
        "times",
        "Times that the circuit breaker before Triton opened.",
        source="service",
        job="service",
    ),
    Metric(
        "model_fallback_total",
        "counter",
        "calls",
        "Calls that the model in process answered in Triton's place, by what was wrong with Triton.",
        labels={"reason": FALLBACK_REASONS},
        source="service",
        job="service",
    ),
    Metric(
        "model_triton_canary_state",
        "gauge",
        "state",
        "1 for what Triton's last canary inference came to.",
        labels={"state": CANARY_STATES},
        source="supervisor",
        job="triton-supervisor",
    ),
    Metric(
        "model_triton_restarts_total",
        "counter",
        "times",
        "Times that Triton ended and was started again.",
        source="supervisor",
        job="triton-supervisor",
    ),
    Metric(
        "model_triton_heals_total",
        "counter",
        "times",
        "Times that a dead stub's model was unloaded and loaded.",
        source="supervisor",
        job="triton-supervisor",
    ),
    Metric(
        "model_triton_orphans_total",
        "counter",
        "processes",
        "Stubs that outlived their Triton and were ended.",
        source="supervisor",
        job="triton-supervisor",
    ),
    Metric(
        "model_triton_exits_total",
        "counter",
        "ends",
        "Ends of Triton, by what its exit code and its last lines tell.",
        labels={"how": EXITS},
        source="supervisor",
        job="triton-supervisor",
    ),
    Metric(
        "model_triton_last_exit_info",
        "gauge",
        "end",
        "1 for exit code and kind of Triton's last end that was neither clean nor asked for.",
        labels={"code": (), "how": EXITS},
        limits={"code": 1},
        source="supervisor",
        job="triton-supervisor",
    ),
)


def _served(name: str, unit: str, text: str) -> Metric:
    labels: dict[str, tuple[str, ...]] = {"model": (), "version": ()}
    return Metric(f"nv_inference_{name}", "counter", unit, text, labels=labels, source="triton", job="triton")


# Triton's own figures that rules and runbooks read; what panels read of it is in names_foreign.
TRITON_SERVER: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        _served("request_success", "requests", "Requests that Triton answered, errors of a Python backend included."),
        _served("request_duration_us", "microseconds", "Time from a request's arrival at Triton to its answer."),
        _served("queue_duration_us", "microseconds", "Time that requests waited in Triton's queue."),
        _served("compute_infer_duration_us", "microseconds", "Time that requests' batches were computed."),
        _served("count", "texts", "Texts that were computed; a request may hold several."),
        _served("exec_count", "runs", "Runs of the model, a batch each."),
    )
}
