"""One small inference, as readiness: Triton's own answers 200 with a dead stub behind it."""

from __future__ import annotations

from typing import Final

import numpy as np

from service.triton.repository import VERSIONS
from service.triton.transport import TritonError, TritonHttp

__all__ = ["STATES", "ask"]

STATES: Final = ("ok", "refused", "timeout", "broken", "stub_dead", "unloaded", "error", "wrong_answer")
"""What a canary can come to: fine, nothing listens, an open socket without an answer, and so on."""


def ask(triton: TritonHttp, seconds: float) -> str:
    """Return the first state that is not "ok" over all versions, else "ok".

    Args:
        triton: Where to ask.
        seconds: Most time for each version.
    """
    ids, mask = np.array([[3, 4]], dtype=np.int64), np.ones((1, 2), dtype=np.int64)
    for version in VERSIONS:
        try:
            logits = triton.infer(ids, mask, version=version, seconds=seconds)
        except TritonError as error:
            return error.reason if error.reason in STATES else "error"
        if logits.shape != (1, 3) or not np.isfinite(logits).all():
            return "wrong_answer"
    return "ok"
