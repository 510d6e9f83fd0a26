"""More work than the card does: it computes in 97% of the time, and has no pause any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from _gpu import becomes, cannot_cause, prepare, usual  # type: ignore[import-not-found]  # as the drill finds it

SLUG = "gpu_saturated"
SIMULATED = True
# the service looks at the played card as it would at the card of its own model
SETTINGS = {"memory_device": "gpu"}
SERVICE_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
EXPORTER_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
__all__ = ["cannot_cause", "cause", "prepare", "twin_cause", "usual"]


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Saturate the card; that the service then answers by the CPU's model is its own doing.

    Args:
        stack: The drill's handle on the stack.
    """
    with becomes(stack, lambda card: replace(card, busy=97)):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Use the card up to 94%, steadily: much, and it gets all that comes.

    Args:
        stack: The drill's handle on the stack.
    """
    with becomes(stack, lambda card: replace(card, busy=94)):
        yield
