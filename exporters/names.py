"""Every metric, span and label of the product, once: adapters, rules, panels and tests read them here.

Names are frozen once shipped. A label's values are a closed set, or come from data and are then bounded by `limits`;
what is over the bound is counted under "(other)", so that cardinality is bounded by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exporters.buckets import (
    CONFIDENCE_BUCKETS,
    FILTER_BUCKETS,
    GC_BUCKETS,
    LAG_BUCKETS,
    LATENCY_BUCKETS,
    LENGTH_BUCKETS,
    STAGE_BUCKETS,
    TOKEN_BUCKETS,
)
from exporters.labels import (
    AGENT_LIMIT,
    INPUT_BUCKETS,
    LABELS,
    LAYERS,
    OBJECTIVES_SECONDS,
    OTHER,
    OUTCOMES,
    PHASE_LIMIT,
    REFUSED_REASONS,
    ROUTE_LIMIT,
    SENTIMENTS,
    STAGE_LIMIT,
    WORKER_ENDS,
    WORKER_LIMIT,
    input_bucket,
)
from exporters.metric import UNIT_SUFFIXES, Metric
from exporters.names_canary import CANARY, ROLES
from exporters.names_degraded import DEGRADED
from exporters.names_drift import DRIFT
from exporters.names_foreign import FOREIGN, ForeignMetric
from exporters.names_gpu import GPU
from exporters.names_inputs import INPUTS
from exporters.names_kernels import KERNELS
from exporters.names_kubernetes import KUBERNETES, KUBERNETES_JOB, KUBERNETES_NAMESPACE
from exporters.names_notifying import NOTIFYING
from exporters.names_process import PROCESS
from exporters.names_replay import REPLAY
from exporters.names_scheduler import SCHEDULER
from exporters.names_stream import STREAM
from exporters.names_telemetry import TELEMETRY
from exporters.names_tokens import TOKENS
from exporters.names_triton import TRITON, TRITON_SERVER
from exporters.spans import ROOT_SPAN, SPANS, STAGES, Span

__all__ = [
    "FOREIGN",
    "INPUT_BUCKETS",
    "KUBERNETES",
    "KUBERNETES_JOB",
    "KUBERNETES_NAMESPACE",
    "LABELS",
    "LAYERS",
    "METRICS",
    "NOTIFYING",
    "OBJECTIVES_SECONDS",
    "OTHER",
    "OUTCOMES",
    "ROOT_SPAN",
    "SPANS",
    "STAGES",
    "TRITON_SERVER",
    "UNIT_SUFFIXES",
    "ForeignMetric",
    "Metric",
    "Span",
    "input_bucket",
]

# Counted from rows: what happened to requests.
_MODEL = (
    Metric(
        "model_requests_total",
        "counter",
        "requests",
        "Requests that ended, by route template and outcome.",
        labels={"route": (), "outcome": OUTCOMES},
        limits={"route": ROUTE_LIMIT},
    ),
    Metric(
        "model_refused_total",
        "counter",
        "requests",
        "Refused requests, by the rule of the contract that they broke.",
        labels={"reason": REFUSED_REASONS},
    ),
    Metric(
        "model_latency_seconds",
        "histogram",
        "seconds",
        "Duration of answered requests (ok, degraded), by length class of the input.",
        labels={"input_bucket": INPUT_BUCKETS},
        buckets=LATENCY_BUCKETS,
    ),
    Metric(
        "model_stage_seconds",
        "histogram",
        "seconds",
        "Duration of each business step, over all requests that reached it.",
        labels={"stage": STAGES},
        limits={"stage": STAGE_LIMIT},
        buckets=STAGE_BUCKETS,
    ),
    Metric(
        "model_filter_seconds",
        "histogram",
        "seconds",
        "Time in front of the model without the body's arrival: middleware, filters, cleaning; by family of agents.",
        labels={"agent_family": ()},
        limits={"agent_family": AGENT_LIMIT},
        buckets=FILTER_BUCKETS,
    ),
    Metric(
        "model_input_length_characters", "histogram", "characters", "Length of the input texts.", buckets=LENGTH_BUCKETS
    ),
    Metric("model_input_tokens", "histogram", "tokens", "Tokens of the input texts.", buckets=TOKEN_BUCKETS),
    Metric(
        "model_output_confidence",
        "histogram",
        "ratio",
        "Confidence of the answers, 0 to 1, by answered class, and by the version that answered: stable where there is "
        "but one.",
        labels={"label": SENTIMENTS, "role": ROLES},
        buckets=CONFIDENCE_BUCKETS,
    ),
    Metric(
        "model_requests_in_flight",
        "gauge",
        "requests",
        "Requests that started and have not ended, over live workers.",
        source="open slots",
    ),
    Metric(
        "model_oldest_request_age_seconds",
        "gauge",
        "seconds",
        "Age of the oldest request in flight; 0 when there is none.",
        source="open slots",
    ),
    Metric(
        "model_unfinished_requests_total",
        "counter",
        "requests",
        "Requests that started in a worker that died and never ended, by the last stage they reached.",
        labels={"stage": ("(none)", *STAGES)},
        limits={"stage": STAGE_LIMIT},
        source="open slots",
    ),
    Metric(
        "model_worker_up",
        "gauge",
        "workers",
        "1 while the worker process lives, 0 once it died; one that stopped cleanly is not shown.",
        labels={"worker": ()},
        limits={"worker": WORKER_LIMIT},
        source="ring files",
    ),
    Metric(
        "model_worker_ends_total",
        "counter",
        "workers",
        "Worker processes that ended: cleanly, or died without a last word.",
        labels={"how": WORKER_ENDS},
        source="ring files",
    ),
)

# From the workers' status pages: cumulative figures are added up over workers and their lives, the others are of now.
_RUNTIME = (
    Metric(
        "runtime_event_loop_lag_seconds",
        "histogram",
        "seconds",
        "How late the event loop's ticks came.",
        buckets=LAG_BUCKETS,
        source="status page",
    ),
    Metric(
        "runtime_event_loop_blocked_seconds_total",
        "counter",
        "seconds",
        "Time in event loop lags over 0.1 s.",
        source="status page",
    ),
    Metric(
        "runtime_heartbeat_age_seconds",
        "gauge",
        "seconds",
        "Time since the last sign of life, oldest over live workers: of the event loop, and of a plain thread.",
        labels={"source": ("loop", "thread")},
        source="status page",
    ),
    Metric(
        "runtime_gc_pause_seconds",
        "histogram",
        "seconds",
        "Pauses of the cyclic garbage collector, by generation.",
        labels={"generation": ("0", "1", "2")},
        buckets=GC_BUCKETS,
        source="status page",
    ),
    Metric(
        "runtime_process_cpu_seconds_total",
        "counter",
        "seconds",
        "CPU time of the service's worker processes.",
        source="status page",
    ),
    Metric(
        "runtime_loop_cpu_wait_seconds_total",
        "counter",
        "seconds",
        "Time in which the thread of the event loop was ready to run and got no CPU, summed over workers.",
        source="status page",
    ),
    Metric(
        "runtime_cpu_periods_total",
        "counter",
        "periods",
        "Periods of the CPU quota that the workers' control group has, summed over workers.",
        source="status page",
    ),
    Metric(
        "runtime_cpu_throttled_periods_total",
        "counter",
        "periods",
        "Periods of that quota in which the group was throttled, summed over workers.",
        source="status page",
    ),
    Metric(
        "runtime_process_resident_memory_bytes",
        "gauge",
        "bytes",
        "Resident memory, summed over live workers.",
        source="status page",
    ),
    Metric("runtime_threads", "gauge", "threads", "Threads, summed over live workers.", source="status page"),
    Metric(
        "runtime_standing_threads",
        "gauge",
        "threads",
        "Threads that have not moved for 5 s while a request has been in flight for 5 s, by what they wait for.",
        labels={"waits": ("lock", "call")},
        source="status page",
    ),
    Metric(
        "runtime_standing_tasks",
        "gauge",
        "tasks",
        "Tasks of asyncio that have awaited at one place for 5 s while a request is that old, by what they await.",
        labels={"waits": ("lock", "await")},
        source="status page",
    ),
    Metric(
        "runtime_executor_wait_seconds",
        "gauge",
        "seconds",
        "How long a call that does nothing waits for a thread of the event loop's executor, longest over live workers.",
        source="status page",
    ),
    Metric(
        "runtime_open_file_descriptors",
        "gauge",
        "descriptors",
        "Open file descriptors, summed over live workers.",
        source="status page",
    ),
    Metric(
        "runtime_file_descriptors_used_ratio",
        "gauge",
        "ratio",
        "Open file descriptors over the process's limit, 0 to 1, of the worker that is nearest to it.",
        source="status page",
    ),
    Metric(
        "runtime_start_phase_seconds",
        "gauge",
        "seconds",
        "Time that each phase of the last start took, slowest over live workers.",
        labels={"phase": ()},
        limits={"phase": PHASE_LIMIT},
        source="status page",
    ),
    Metric(
        "runtime_host_cpu_ratio",
        "gauge",
        "ratio",
        "Share of the host's CPU time that was busy since the last look, 0 to 1.",
        source="host",
    ),
    Metric(
        "runtime_host_memory_available_bytes",
        "gauge",
        "bytes",
        "Memory that the host can give to new work without swapping.",
        source="host",
    ),
    Metric(
        "runtime_disk_free_bytes",
        "gauge",
        "bytes",
        "Free space of the disk under the exporter's state, or under the rows.",
        labels={"folder": ("state", "rows")},
        source="host",
    ),
    Metric(
        "runtime_disk_free_ratio",
        "gauge",
        "ratio",
        "Free space of the disk under the exporter's state, or under the rows, over its size, 0 to 1.",
        labels={"folder": ("state", "rows")},
        source="host",
    ),
)

# Shown by the service's own admin port, which answers when the exporter is lost.
_SERVICE = (
    Metric(
        "model_build_info",
        "gauge",
        "info",
        "Always 1; which build, commit, model and configuration are running.",
        labels={"version": (), "commit": (), "model": (), "config": ()},
        limits={"version": 1, "commit": 1, "model": 1, "config": 1},
        source="service",
        job="service",
    ),
    Metric(
        "runtime_phase",
        "gauge",
        "state",
        "1 for the phase that the service is in, 0 for the others.",
        labels={"phase": ()},
        limits={"phase": PHASE_LIMIT},
        source="service",
        job="service",
    ),
)

METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        *_MODEL,
        *CANARY,
        *INPUTS,
        *DRIFT,
        *SCHEDULER,
        *_RUNTIME,
        *PROCESS,
        *GPU,
        *KERNELS,
        *TELEMETRY,
        *_SERVICE,
        *TRITON,
        *DEGRADED,
        *REPLAY,
        *STREAM,
        *TOKENS,
    )
}
