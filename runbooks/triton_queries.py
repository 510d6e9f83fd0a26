"""What triage asks Prometheus about a model behind Triton."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CANARY",
    "COMPUTE_TIME",
    "CONNECTION_COUNT",
    "CONNECTION_SUM",
    "EXECUTIONS",
    "EXITS",
    "FALLBACK",
    "HEALS",
    "INFERENCES",
    "LAST_EXIT",
    "QUEUE_TIME",
    "SERVED",
    "SERVED_TIME",
    "TRITON_JOB",
    "TRITON_QUERIES",
]

TRITON_JOB: Final = "triton"
# What the supervisor's canary inference came to, and how often it had to mend something.
CANARY: Final = "model_triton_canary_state"
HEALS: Final = "model_triton_heals_total"
# What the service says of Triton: calls that the model in process answered in its place.
FALLBACK: Final = "model_fallback_total"

# Triton's own view of a request, to hold against the service's.
SERVED: Final = "nv_inference_request_success"
SERVED_TIME: Final = "nv_inference_request_duration_us"
# What that time went into, in microseconds, and how many texts in how many runs of the model.
QUEUE_TIME: Final = "nv_inference_queue_duration_us"
COMPUTE_TIME: Final = "nv_inference_compute_infer_duration_us"
INFERENCES: Final = "nv_inference_count"
EXECUTIONS: Final = "nv_inference_exec_count"

# What the service's calls waited for a connection, before anything of them was sent.
CONNECTION_SUM: Final = "model_connection_wait_seconds_sum"
CONNECTION_COUNT: Final = "model_connection_wait_seconds_count"

# How it ended, as its supervisor read from its exit code and its last lines.
EXITS: Final = "model_triton_exits_total"
LAST_EXIT: Final = "model_triton_last_exit_info"

TRITON_QUERIES: Final = (
    *(CANARY, HEALS, FALLBACK, SERVED, SERVED_TIME, CONNECTION_SUM, CONNECTION_COUNT, EXITS, LAST_EXIT),
    *(QUEUE_TIME, COMPUTE_TIME, INFERENCES, EXECUTIONS),
)
