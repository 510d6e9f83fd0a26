"""What the worker's process uses of its machine.

Measures  CPU seconds (user and system), resident bytes, threads, open file descriptors and their limit; how often no
          descriptor was left when it looked, and of what kind the open ones are once half of the limit is used.
Source    psutil over /proc of this process; where no descriptor is left to read it with, fstat and the process's times.
Error     CPU time has the kernel's resolution of 10 ms; a want of descriptors between two looks is not seen.
Cost      about 0.2 ms per reading, once a second on the heartbeat thread; with over half of the descriptors in use
          0.3 us more for each number up to the limit, 4,096 at most.
Absent    a figure that the system does not give is left out, never 0: without a descriptor that is memory and threads.
Explains  memory_leak, file_descriptors_exhausted, cpu_throttled
"""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import psutil

__all__ = ["ProcessUsage", "kinds_of"]

# What is open beyond these numbers is not looked at.
MOST_NUMBERS: Final = 4096
# From this share on it is told what they are.
TOLD_SHARE: Final = 0.5


class ProcessUsage:
    """Reads the usage of one process.

    Args:
        process: The process; by default this one, looked up at the first reading so that a fork changes it.
        limit: Returns the most descriptors that this process may have.
    """

    def __init__(
        self,
        process: psutil.Process | None = None,
        limit: Callable[[], int] = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    ) -> None:
        self._process = process
        self._limit = limit
        self._refused = 0

    def reading(self) -> dict[str, Any]:
        """Return the status page's part."""
        limit = self._limit()
        try:
            usage = self._of_the_system()
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            # /proc cannot be opened either; what is told without a descriptor is told.
            self._refused += 1
            times = os.times()
            usage = {"cpu_s": times.user + times.system, "fds": limit}
        usage |= {"fd_limit": limit, "fd_refused": self._refused}
        if usage["fds"] > TOLD_SHARE * limit:
            usage["fd_kinds"] = kinds_of(min(limit, MOST_NUMBERS))
        return usage

    def _of_the_system(self) -> dict[str, Any]:
        process = self._process = self._process or psutil.Process()
        with process.oneshot():  # one read of /proc/self/stat for several figures
            cpu = process.cpu_times()
            return {
                "cpu_s": cpu.user + cpu.system,
                "rss_bytes": process.memory_info().rss,
                "threads": process.num_threads(),
                "fds": process.num_fds(),
            }


def kinds_of(numbers: int) -> dict[str, int]:
    """Return how many of the open descriptors are sockets, files, pipes and others; none is opened for it.

    Args:
        numbers: Descriptors from 0 up to this number are looked at.
    """
    kinds: Counter[str] = Counter()
    for number in range(numbers):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode):
            kinds["socket"] += 1
        elif stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            kinds["file"] += 1
        else:
            kinds["pipe" if stat.S_ISFIFO(mode) else "other"] += 1
    return dict(kinds)
