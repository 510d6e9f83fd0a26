"""What the service's worker holds on the card grows by 9 GiB a minute, and nothing is given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _gpu import (  # type: ignore[import-not-found]  # as the drill finds it
    GIB,
    MODEL,
    cannot_cause,
    holding,
    moves,
    prepare,
    usual,
)

SLUG = "gpu_memory_leak"
SIMULATED = True
EXPORTER_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
__all__ = ["cannot_cause", "cause", "prepare", "twin_cause", "usual"]

PACE = 0.15 * GIB
"""Bytes a second: the card is full after seven minutes and a half."""
ARENA_SECONDS = 20.0
ARENA = 20 * GIB


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Let it grow.

    Args:
        stack: The drill's handle on the stack.
    """
    with moves(stack, lambda card, seconds: holding(card, MODEL + int(PACE * seconds))):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Let an arena grow as longer texts come, far faster, to where it stays: much, and steady.

    Args:
        stack: The drill's handle on the stack.
    """
    with moves(stack, lambda card, seconds: holding(card, MODEL + int(ARENA * min(1.0, seconds / ARENA_SECONDS)))):
        yield
