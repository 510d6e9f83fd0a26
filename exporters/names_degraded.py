"""Metrics of what stands in for the model, of the memory in front of it, and of its sessions."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["DEGRADED", "DEGRADED_REASONS", "RESULT_EVENTS", "TURNS"]

# Words of service/degradation; held equal by tests/service/test_service_metrics.py.
DEGRADED_REASONS: Final = ("gpu_saturated", "triton_down", "queue_full")
RESULT_EVENTS: Final = ("accepted", "stored", "fetched", "expired", "failed", "no_room")
TURNS: Final = ("entered", "left")

DEGRADED: Final = (
    Metric(
        "model_degraded_state",
        "gauge",
        "state",
        "1 while the CPU's model answers for this reason, 0 otherwise; of the worker that answered the scrape.",
        labels={"reason": DEGRADED_REASONS},
        source="service",
        job="service",
    ),
    Metric(
        "model_degraded_turns_total",
        "counter",
        "times",
        "Times that the service became degraded, and recovered, by reason.",
        labels={"reason": DEGRADED_REASONS, "turn": TURNS},
        source="service",
        job="service",
    ),
    Metric(
        "model_results_total",
        "counter",
        "results",
        "What became of answers that are fetched later, by event.",
        labels={"event": RESULT_EVENTS},
        source="service",
        job="service",
    ),
    Metric(
        "model_open_sessions",
        "gauge",
        "sessions",
        "Model sessions that the answering worker holds.",
        source="service",
        job="service",
    ),
    Metric(
        "model_duplicate_sessions",
        "gauge",
        "sessions",
        "Model sessions of the answering worker beyond the first of each model.",
        source="service",
        job="service",
    ),
    Metric(
        "model_memory_known_state",
        "gauge",
        "state",
        "1 while batches are held against the free memory of the model's device; 0: no reading, or nothing measured.",
        source="service",
        job="service",
    ),
    Metric(
        "model_memory_free_bytes",
        "gauge",
        "bytes",
        "Free memory of the model's device, as the service looks at it.",
        source="service",
        job="service",
    ),
    Metric(
        "model_memory_cell_bytes",
        "gauge",
        "bytes",
        "Most memory that a batch took per cell (text of the batch x characters of its longest), learnt.",
        source="service",
        job="service",
    ),
    Metric(
        "model_memory_peak_bytes",
        "gauge",
        "bytes",
        "Most that was held on the model's device at any look, ten a second, since the model was loaded.",
        source="service",
        job="service",
    ),
    Metric(
        "model_device_fallback_state",
        "gauge",
        "state",
        "1 while the model in the service's process computes on the CPU although a GPU was asked for.",
        source="service",
        job="service",
    ),
    Metric(
        "model_memory_short_total",
        "counter",
        "requests",
        "Requests for which the model's device had no memory, by estimate: refused, or of a VIP degraded.",
    ),
)
