"""The Prometheus queries of triage, each once, and the arithmetic on the raw series: rates are taken here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from runbooks.canary_queries import CANARY_QUERIES
from runbooks.cluster_queries import CLUSTER_QUERIES
from runbooks.evidence import Series
from runbooks.gpu_queries import GPU_QUERIES
from runbooks.memory_queries import MEMORY_QUERIES
from runbooks.preprocess_queries import PREPROCESS_QUERIES
from runbooks.rows import Floats
from runbooks.stream_queries import STREAM_QUERIES
from runbooks.token_queries import TOKEN_QUERIES
from runbooks.triton_queries import TRITON_QUERIES

__all__ = [
    "ARCHIVE_ERRORS",
    "BLOCKED",
    "CONTRACT_REASONS",
    "CPU",
    "CPU_PERIODS",
    "CPU_THROTTLED",
    "DESCRIPTORS",
    "DESCRIPTORS_RATIO",
    "DESCRIPTORS_REFUSED",
    "DISK_BYTES",
    "DISK_RATIO",
    "EXECUTOR_WAIT",
    "EXPORTER_JOB",
    "FILTER_BUCKET",
    "FILTER_SUM",
    "GC_COUNT",
    "GC_PAUSE",
    "HEARTBEAT",
    "IN_FLIGHT",
    "LABELS_REFUSED",
    "LAG_BUCKET",
    "LATENCY_BUCKET",
    "LOOP_CPU_WAIT",
    "LOW_QUALITY",
    "PHASE",
    "PII_MASKED",
    "QUERIES",
    "REFUSED",
    "REPLAY_DIFFERENCE",
    "REPLAY_TOKENS",
    "REQUESTS",
    "SERIES",
    "SERVICE_JOB",
    "SHARPNESS_BUCKET",
    "SLOTS",
    "SPANS_DROPPED",
    "SPANS_SENT",
    "SPANS_WAITING",
    "STAGE_COUNT",
    "STAGE_SUM",
    "STANDING",
    "START_PHASE",
    "STATE_ERRORS",
    "UNRECORDED",
    "UP",
    "WORKER_ENDS",
    "WORKER_UP",
    "heartbeat_lead",
    "histogram",
    "increase",
    "increments",
    "quantile",
]

SERVICE_JOB: Final = "service"
EXPORTER_JOB: Final = "inferdeck-exporter"

UP: Final = "up"
BLOCKED: Final = "runtime_event_loop_blocked_seconds_total"
LAG_BUCKET: Final = "runtime_event_loop_lag_seconds_bucket"
HEARTBEAT: Final = "runtime_heartbeat_age_seconds"
GC_COUNT: Final = "runtime_gc_pause_seconds_count"
GC_PAUSE: Final = "runtime_gc_pause_seconds_sum"
REQUESTS: Final = "model_requests_total"
REFUSED: Final = "model_refused_total"
FILTER_BUCKET: Final = "model_filter_seconds_bucket"
FILTER_SUM: Final = "model_filter_seconds_sum"
CPU: Final = "runtime_process_cpu_seconds_total"
CPU_PERIODS: Final = "runtime_cpu_periods_total"
CPU_THROTTLED: Final = "runtime_cpu_throttled_periods_total"
LOOP_CPU_WAIT: Final = "runtime_loop_cpu_wait_seconds_total"
LABELS_REFUSED: Final = "telemetry_labels_refused_total"
SERIES: Final = "telemetry_series"
LATENCY_BUCKET: Final = "model_latency_seconds_bucket"
STAGE_SUM: Final = "model_stage_seconds_sum"
STAGE_COUNT: Final = "model_stage_seconds_count"
IN_FLIGHT: Final = "model_requests_in_flight"
OLDEST: Final = "model_oldest_request_age_seconds"
RESIDENT: Final = "runtime_process_resident_memory_bytes"
HOST_CPU: Final = "runtime_host_cpu_ratio"
DESCRIPTORS: Final = "runtime_open_file_descriptors"
DESCRIPTORS_RATIO: Final = "runtime_file_descriptors_used_ratio"
DESCRIPTORS_REFUSED: Final = "runtime_file_descriptors_refused_total"
EXECUTOR_WAIT: Final = "runtime_executor_wait_seconds"
STANDING: Final = "runtime_standing_threads"
UNREAD: Final = "telemetry_ring_unread_rows"
LOST: Final = "telemetry_rows_lost_total"
PHASE: Final = "runtime_phase"
START_PHASE: Final = "runtime_start_phase_seconds"
DISK_BYTES: Final = "runtime_disk_free_bytes"
DISK_RATIO: Final = "runtime_disk_free_ratio"
STATE_ERRORS: Final = "telemetry_state_write_errors_total"
ARCHIVE_ERRORS: Final = "telemetry_archive_errors_total"
SPANS_WAITING: Final = "telemetry_spans_waiting_seconds"
SPANS_SENT: Final = "telemetry_spans_sent_total"
SPANS_DROPPED: Final = "telemetry_spans_dropped_total"
UNRECORDED: Final = "telemetry_requests_unrecorded_total"
WORKER_ENDS: Final = "model_worker_ends_total"
WORKER_UP: Final = "model_worker_up"
LOW_QUALITY: Final = "model_low_quality_input_total"
PII_MASKED: Final = "model_pii_masked_total"
SLOTS: Final = "model_token_slots_total"
REPLAY_DIFFERENCE: Final = "model_replay_difference_ratio"
REPLAY_TOKENS: Final = "model_replay_other_tokens_ratio"
SHARPNESS_BUCKET: Final = "model_image_sharpness_score_bucket"

# What a client's own code can break; a path or method that is not there (404, 405) is anybody's.
CONTRACT_REASONS: Final = ("schema", "too_long", "illegal_characters")

# Gauges and counters without decisive use yet still tell where to look when nothing is named (runbooks/unusual.py).
QUERIES: Final = (
    UP,
    BLOCKED,
    LAG_BUCKET,
    HEARTBEAT,
    GC_COUNT,
    GC_PAUSE,
    REQUESTS,
    REFUSED,
    FILTER_BUCKET,
    FILTER_SUM,
    CPU,
    CPU_PERIODS,
    CPU_THROTTLED,
    LOOP_CPU_WAIT,
    LABELS_REFUSED,
    SERIES,
    LATENCY_BUCKET,
    STAGE_SUM,
    STAGE_COUNT,
    IN_FLIGHT,
    OLDEST,
    RESIDENT,
    HOST_CPU,
    DESCRIPTORS,
    DESCRIPTORS_RATIO,
    DESCRIPTORS_REFUSED,
    EXECUTOR_WAIT,
    STANDING,
    UNREAD,
    LOST,
    PHASE,
    START_PHASE,
    WORKER_ENDS,
    WORKER_UP,
    DISK_BYTES,
    DISK_RATIO,
    STATE_ERRORS,
    ARCHIVE_ERRORS,
    UNRECORDED,
    SPANS_WAITING,
    SPANS_SENT,
    SPANS_DROPPED,
    LOW_QUALITY,
    SHARPNESS_BUCKET,
    PII_MASKED,
    SLOTS,
    REPLAY_DIFFERENCE,
    REPLAY_TOKENS,
    *CANARY_QUERIES,
    *CLUSTER_QUERIES,
    *TRITON_QUERIES,
    *MEMORY_QUERIES,
    *GPU_QUERIES,
    *PREPROCESS_QUERIES,
    *STREAM_QUERIES,
    *TOKEN_QUERIES,
)


def heartbeat_lead(series: Iterable[Series]) -> tuple[Floats, Floats]:
    """Return by how much the loop's last tick is older than the plain thread's, at times at which both are known.

    Returns:
        Unix seconds and seconds, both shape (n,).
    """
    by = {one.labels.get("source"): one for one in series}
    if "loop" not in by or "thread" not in by:
        return np.zeros(0), np.zeros(0)
    times, mine, others = np.intersect1d(by["loop"].times, by["thread"].times, return_indices=True)
    return times, by["loop"].values[mine] - by["thread"].values[others]


def increments(series: Series) -> tuple[Floats, Floats]:
    """Return by how much a counter grew from sample to sample; a fall is a restart and counts as growth from 0.

    Returns:
        Times of the later sample of each pair (unix seconds) and growth, both shape (n - 1,).
    """
    steps = np.diff(series.values)
    return series.times[1:], np.where(steps < 0, series.values[1:], steps)


def increase(series: Iterable[Series], since: float, until: float) -> float:
    """Return by how much counters grew in (since, until], unix seconds, over all series together."""
    total = 0.0
    for one in series:
        times, steps = increments(one)
        total += float(steps[(times > since) & (times <= until)].sum())
    return total


def histogram(series: Iterable[Series], since: float, until: float) -> dict[float, float]:
    """Return upper bound -> observations in that bucket alone, grown in (since, until]; bounds ascend."""
    cumulative: dict[float, float] = {}
    for one in series:
        bound = float(one.labels.get("le", "inf"))
        cumulative[bound] = cumulative.get(bound, 0.0) + increase([one], since, until)
    counts: dict[float, float] = {}
    below = 0.0
    for bound in sorted(cumulative):
        counts[bound] = max(cumulative[bound] - below, 0.0)
        below = max(below, cumulative[bound])
    return counts


def quantile(counts: Mapping[float, float], share: float) -> float | None:
    """Return the quantile of a histogram, linear inside the bucket as Prometheus has it; None when it is empty."""
    total = sum(counts.values())
    if total <= 0:
        return None
    rank, seen, lower = share * total, 0.0, 0.0
    for bound, count in counts.items():
        if seen + count >= rank and count > 0:
            return lower if bound == float("inf") else lower + (bound - lower) * (rank - seen) / count
        seen, lower = seen + count, bound
    return lower
