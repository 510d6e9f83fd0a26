"""The closed lists of layers and of slugs; a slug names one failure in rule, test, runbook, panel and program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exporters.names import LAYERS

__all__ = ["ALWAYS_FIRING", "FAILURES", "LAYERS", "META", "SYMPTOMS", "UNKNOWN_LAYER"]

# A symptom names no layer: which one is at fault is what its runbook finds out.
UNKNOWN_LAYER: Final = "unknown"

_BY_LAYER: Final[Mapping[str, str]] = {
    "client": "contract_violations upstream_timeout",
    "network": "client_pool_wait triton_slow_network",
    "preprocess": "regex_backtracking pii_mask_mismatch",
    "scheduler": "long_text_burst batching_degenerated queue_delay_misset",
    "tokenizer": "tokenizer_cache_growth tokenizer_load_lock tokenizer_padding",
    "model": "triton_down triton_hung triton_stub_dead triton_model_unloaded canary_regression model_version_errors "
    "model_loaded_twice batch_too_large results_differ",
    "gpu": "gpu_kernel_regression gpu_memory_leak gpu_out_of_memory gpu_saturated gpu_noisy_neighbour gpu_lost "
    "illegal_memory_access",
    "runtime": "event_loop_blocked service_down slow_start worker_killed memory_leak gc_pauses worker_deadlock "
    "thread_pool_exhausted",
    "host": "disk_full cpu_throttled file_descriptors_exhausted rollout_cuts_off pod_pending",
    "data": "low_quality_text blurred_images input_drift confidence_fall preprocess_mismatch stream_lag",
    "telemetry": "exporter_unreachable series_explosion collector_down",
}

# Slug -> the layer that is at fault.
FAILURES: Final[Mapping[str, str]] = {slug: layer for layer, slugs in _BY_LAYER.items() for slug in slugs.split()}
# Slugs of alerts that are no failures: what users feel or what comes near a bound, and what watches the watching. Each
# has a file in the catalogue; a slug that waits for its metric is added together with that file.
SYMPTOMS: Final = (
    "client_disconnects",
    "confidence_p95_fall",
    "error_budget_burn",
    "error_budget_burn_slow",
    "error_rate",
    "file_descriptors_near_limit",
    "latency_objective",
    "memory_growth",
    "no_traffic",
    "queue_wait",
    "request_stuck",
    "worker_stalled",
)
META: Final = ("notifications_lost", "scrape_failing", "telemetry_loss", "watchdog")
# The one alert that has neither a threshold nor a silence.
ALWAYS_FIRING: Final = "watchdog"
