"""Pauses of the garbage collector, by generation.

Measures  seconds from a collection's start to its stop, cumulative since the worker's start.
Source    gc.callbacks, on whichever thread collects; collections hold the GIL, so all threads wait for them.
Error     the callbacks' own time, about 1 us, is inside.
Cost      about 1 us per collection.
Absent    after stop() nothing is counted.
Explains  gc_pauses
"""

from __future__ import annotations

import gc
from time import perf_counter
from typing import Any, Final

from probes.histogram import Histogram

__all__ = ["GcPauses"]

BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class GcPauses:
    """Listens to the collector between start() and stop()."""

    def __init__(self) -> None:
        self._pauses = tuple(Histogram(BOUNDS_S) for _ in range(3))
        self._started = 0.0

    def start(self) -> None:
        """Begin to listen; starting twice listens once."""
        if self._heard not in gc.callbacks:
            gc.callbacks.append(self._heard)

    def stop(self) -> None:
        """Cease to listen."""
        if self._heard in gc.callbacks:
            gc.callbacks.remove(self._heard)

    def reading(self) -> dict[str, Any]:
        """Return the status page's part: collections and pauses by generation."""
        return {
            "gc": {
                str(generation): {"collections": sum(pauses.counts), "pause": pauses.reading()}
                for generation, pauses in enumerate(self._pauses)
            }
        }

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = perf_counter()
        elif self._started:  # else it listened only from the middle of this collection on
            self._pauses[min(info["generation"], 2)].observe(perf_counter() - self._started)
            self._started = 0.0
