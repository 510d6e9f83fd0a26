"""Pauses of the garbage collector, by generation.

Measures  seconds from a collection's start to its stop, cumulative since the worker's start; of the last 32 that took
          50 ms or more, when each was, and of full ones the CPU seconds: who gets no CPU has long pauses too.
Source    gc.callbacks, on whichever thread collects; collections hold the GIL, so all threads wait for them.
Error     the callbacks' own time, about 1 us, is inside.
Cost      about 1 us per collection, 2 us per full one.
Absent    after stop() nothing is counted.
Explains  gc_pauses
Memory    32 long pauses of four numbers.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from time import perf_counter, thread_time_ns, time_ns
from typing import Any, Final

from probes.histogram import Histogram

__all__ = ["GcPauses"]

BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
# From here on a pause is one that a caller notices; as in alerts/catalogue/gc_pauses.yaml.
LONG_S: Final = 0.05
KEPT: Final = 32
FULL: Final = 2


class GcPauses:
    """Listens to the collector between start() and stop().

    Args:
        clock: Seconds.
        wall_ns: Wall clock, ns since 1970.
        cpu_ns: CPU time of the calling thread, ns.
    """

    def __init__(
        self,
        clock: Callable[[], float] = perf_counter,
        wall_ns: Callable[[], int] = time_ns,
        cpu_ns: Callable[[], int] = thread_time_ns,
    ) -> None:
        self._clock = clock
        self._wall_ns = wall_ns
        self._cpu_ns = cpu_ns
        self._cpu_started = 0
        self._pauses = tuple(Histogram(BOUNDS_S) for _ in range(3))
        self._long: deque[dict[str, int]] = deque(maxlen=KEPT)
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
        """Return the status page's part: collections and pauses by generation, and the last long pauses."""
        return {
            "gc": {
                str(generation): {"collections": sum(pauses.counts), "pause": pauses.reading()}
                for generation, pauses in enumerate(self._pauses)
            },
            "gc_long": list(self._long),
        }

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = self._clock()
            if info["generation"] == FULL:
                self._cpu_started = self._cpu_ns()
        elif self._started:  # else it listened only from the middle of this collection on
            seconds, self._started = self._clock() - self._started, 0.0
            self._pauses[min(info["generation"], 2)].observe(seconds)
            if seconds >= LONG_S:
                duration = round(seconds * 1e9)
                told = {"start_unix_ns": self._wall_ns() - duration, "duration_ns": duration}
                told["generation"] = info["generation"]
                if info["generation"] == FULL:
                    told["cpu_ns"] = self._cpu_ns() - self._cpu_started
                self._long.append(told)
