"""What the worker's process uses of its machine.

Measures  CPU seconds (user and system), resident bytes, threads, open file descriptors and their limit.
Source    psutil over /proc of this process.
Error     CPU time has the kernel's resolution of 10 ms.
Cost      about 0.2 ms per reading, once a second on the heartbeat thread.
Absent    a figure that the system does not give is left out, never 0.
Explains  memory_leak, file_descriptors_exhausted, cpu_throttled
"""

from __future__ import annotations

from typing import Any

import psutil

__all__ = ["ProcessUsage"]


class ProcessUsage:
    """Reads the usage of one process.

    Args:
        process: The process; by default this one, looked up at the first reading so that a fork changes it.
    """

    def __init__(self, process: psutil.Process | None = None) -> None:
        self._process = process

    def reading(self) -> dict[str, Any]:
        """Return the status page's part."""
        process = self._process = self._process or psutil.Process()
        with process.oneshot():  # one read of /proc/self/stat for several figures
            cpu = process.cpu_times()
            usage: dict[str, Any] = {
                "cpu_s": cpu.user + cpu.system,
                "rss_bytes": process.memory_info().rss,
                "threads": process.num_threads(),
                "fds": process.num_fds(),
            }
        if hasattr(process, "rlimit"):  # not on every system
            usage["fd_limit"] = process.rlimit(psutil.RLIMIT_NOFILE)[0]
        return usage
