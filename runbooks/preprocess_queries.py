"""What triage asks Prometheus about cleaning and chunking: whether serving does what the training did."""

from __future__ import annotations

from typing import Final

__all__ = ["PREPROCESS_MISMATCH", "PREPROCESS_QUERIES"]

PREPROCESS_MISMATCH: Final = "data_preprocess_mismatch_state"
PREPROCESS_QUERIES: Final = (PREPROCESS_MISMATCH,)
