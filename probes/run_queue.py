"""How long one thread was ready to run and was not let: its wait for a CPU.

Measures  cumulative seconds that the thread waited on a run queue since it began; a thread that sleeps does not wait.
Source    second field of /proc/thread-self/schedstat (Linux, Documentation/scheduler/sched-stats.rst), in nanoseconds.
Error     the wait that goes on now is counted once it ends; a CPU that a hypervisor takes away is not seen.
Cost      one pread, about 1.5 us; one file descriptor.
Absent    None where the system does not tell (no schedstats, no /proc), never 0.
Explains  cpu_throttled; against event_loop_blocked
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["RunQueueWait"]


class RunQueueWait:
    """Reads the wait of the thread that makes it.

    Args:
        path: The thread's schedstat.
    """

    def __init__(self, path: Path | str = "/proc/thread-self/schedstat") -> None:
        self._file = -1
        with contextlib.suppress(OSError):
            # Bound to this thread: thread-self is followed when it is opened.
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def seconds(self) -> float | None:
        """Return the seconds waited since the thread began; None when they are not told."""
        if self._file < 0:
            return None
        try:
            return int(os.pread(self._file, 96, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None

    def close(self) -> None:
        """Let go of the file; nothing is told any more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    # The watch that holds it is dropped without a word in a forked child.
    __del__ = close
