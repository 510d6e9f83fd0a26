"""What triage asks Prometheus about a model behind Triton."""

from __future__ import annotations

from typing import Final

__all__ = ["CANARY", "FALLBACK", "HEALS", "SERVED", "SERVED_TIME", "TRITON_JOB", "TRITON_QUERIES"]

TRITON_JOB: Final = "triton"
# What the supervisor's canary inference came to, and how often it had to mend something.
CANARY: Final = "model_triton_canary_state"
HEALS: Final = "model_triton_heals_total"
# What the service says of Triton: calls that the model in process answered in its place.
FALLBACK: Final = "model_fallback_total"

# Triton's own view of a request, to hold against the service's.
SERVED: Final = "nv_inference_request_success"
SERVED_TIME: Final = "nv_inference_request_duration_us"

TRITON_QUERIES: Final = (CANARY, HEALS, FALLBACK, SERVED, SERVED_TIME)
