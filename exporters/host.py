"""The machine beside the service: CPU and memory.

Measures  share of CPU time that was busy, ratio 0..1; memory available to new work, bytes.
Source    psutil (/proc/stat, /proc/meminfo).
Error     CPU time is counted in ticks of 10 ms: over less than a second the share is coarse.
Cost      two small files per look.
Absent    the share has no value at the first look: it is a difference.
Explains  whether everything on the machine is slow -> runbooks
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil

from exporters.gauges import Gauges

__all__ = ["HostSampler"]


class HostSampler:
    """Looks at the machine."""

    def __init__(
        self,
        cpu_times: Callable[[], Any] = psutil.cpu_times,
        memory: Callable[[], Any] = psutil.virtual_memory,
        shortest_seconds: float = 1.0,
    ) -> None:
        """Prepare.

        Args:
            cpu_times: Returns cumulative seconds by use, as `psutil.cpu_times` does.
            memory: Returns an object with `available` in bytes, as `psutil.virtual_memory` does.
            shortest_seconds: CPU seconds (all cores together) that must have passed for a new share.
        """
        self._cpu_times = cpu_times
        self._memory = memory
        self._shortest = shortest_seconds
        self._last: tuple[float, float] | None = None
        self._ratio: float | None = None

    def sample(self) -> Gauges:
        """Return the gauges."""
        times = self._cpu_times()
        # User time contains guest time already; idle and waiting for disks are the two ways to have nothing to do.
        total = float(sum(times)) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        idle = times.idle + getattr(times, "iowait", 0.0)
        if self._last is None:
            self._last = (total, idle)
        elif total > self._last[0] and total - self._last[0] >= self._shortest:
            passed, idled = total - self._last[0], idle - self._last[1]
            self._ratio = min(1.0, max(0.0, 1.0 - idled / passed))
            self._last = (total, idle)
        # Available, not free: memory in caches is given to whoever asks.
        gauges: Gauges = {"runtime_host_memory_available_bytes": {(): float(self._memory().available)}}
        if self._ratio is not None:
            gauges["runtime_host_cpu_ratio"] = {(): self._ratio}
        return gauges
