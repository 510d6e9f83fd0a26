"""A model that takes far more memory for each token than before: its batches no longer fit into what may be taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

SLUG = "batch_too_large"
# Host memory plays the device, with room for what the model took so far and not for what it takes then.
SETTINGS = {"memory_device": "ram", "memory_budget_bytes": "50331648"}

MIB = 1 << 20
TAKEN_BYTES = 2 * MIB
"""Activations of one token; the twin's are a sixty-fourth of it."""
MOST_BYTES = 96 * MIB
HOLD_SECONDS = 0.03


def _hungry(app: Any, armed: Callable[[], bool], token_bytes: int) -> Any:
    """Return *app*, after wrapping the model's forward so that it holds memory while it computes."""
    from service.backend import OnnxBackend

    forward = OnnxBackend.forward

    def taking(self: Any, ids: Any, mask: Any) -> Any:
        if not armed():
            return forward(self, ids, mask)
        # Touched, so that the kernel really gives it.
        activations = np.ones(min(ids.size * token_bytes, MOST_BYTES), np.uint8)
        time.sleep(HOLD_SECONDS)
        logits = forward(self, ids, mask)
        del activations
        return logits

    OnnxBackend.forward = taking  # type: ignore[method-assign]  # the model is what is replaced
    return app


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* over the hungry model.

    Args:
        app: An ASGI app.
        armed: Whether it takes more.
    """
    return _hungry(app, armed, TAKEN_BYTES)


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* over a model that takes as long, and memory that fits: many normal batches.

    Args:
        app: An ASGI app.
        armed: Whether it takes that.
    """
    return _hungry(app, armed, TAKEN_BYTES // 64)
