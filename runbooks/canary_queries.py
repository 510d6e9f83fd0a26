"""What triage asks Prometheus about two versions of the model."""

from __future__ import annotations

from typing import Final

__all__ = ["CANARY_QUERIES", "COMPARISONS", "ROLLBACKS", "VERSION_REQUESTS"]

VERSION_REQUESTS: Final = "model_version_requests_total"
COMPARISONS: Final = "model_version_comparisons_total"
ROLLBACKS: Final = "model_canary_rollbacks_total"

CANARY_QUERIES: Final = (VERSION_REQUESTS, COMPARISONS, ROLLBACKS)
