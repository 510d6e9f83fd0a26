"""Somebody else's training comes onto the service's card, takes a quarter of its memory and computes all the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from _gpu import GIB, becomes, cannot_cause, prepare, usual  # type: ignore[import-not-found]  # as the drill finds it

SLUG = "gpu_noisy_neighbour"
SIMULATED = True
# the service looks at the played card as it would at the card of its own model
SETTINGS = {"memory_device": "gpu"}
SERVICE_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
EXPORTER_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
__all__ = ["cannot_cause", "cause", "prepare", "twin_cause", "usual"]

# no process of this machine: pids end below it
NEIGHBOUR = 4_194_400


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Let the neighbour in.

    Args:
        stack: The drill's handle on the stack.
    """
    held = ((NEIGHBOUR, 20 * GIB, "/opt/lab/bin/train"),)
    with becomes(stack, lambda card: replace(card, busy=99, held=card.held + held)):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Let in one that holds as much and leaves the card time for others.

    Args:
        stack: The drill's handle on the stack.
    """
    held = ((NEIGHBOUR, 20 * GIB, "/opt/lab/bin/serve"),)
    with becomes(stack, lambda card: replace(card, busy=70, held=card.held + held)):
        yield
