"""Metrics about a model behind Triton: of the service that asks it, and of the supervisor that keeps it alive."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["CANARY_STATES", "FALLBACK_REASONS", "TRITON"]

# Held equal to what service/triton/canary.py and service/service_metrics.py show by a test of those.
CANARY_STATES: Final = (
    "starting",
    *("ok", "refused", "timeout", "broken", "stub_dead", "unloaded", "error", "wrong_answer"),
)
FALLBACK_REASONS: Final = (
    "breaker_open",
    *("refused", "timeout", "no_connection", "broken", "stub_dead", "unloaded", "error", "wrong_answer"),
)

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
)
