"""The card falls off the bus: NVML answers "GPU is lost" from then on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from _gpu import becomes, cannot_cause, prepare, usual  # type: ignore[import-not-found]  # as the drill finds it

SLUG = "gpu_lost"
SIMULATED = True
EXPORTER_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
__all__ = ["cannot_cause", "cause", "prepare", "twin_cause", "usual"]

GPU_IS_LOST = 15


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Lose the card.

    Args:
        stack: The drill's handle on the stack.
    """
    with becomes(stack, lambda card: replace(card, error=GPU_IS_LOST)):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Use the card far more than before, and steadily: it answers all the time.

    Args:
        stack: The drill's handle on the stack.
    """
    with becomes(stack, lambda card: replace(card, busy=92)):
        yield
