"""CPU time of processes and of the machine, from the kernel's own counters.

Measures  CPU seconds of all threads of a process; busy core-seconds of the whole machine.
Source    /proc/<pid>/task/*/schedstat (nanoseconds); first line of /proc/stat (ticks).
Error     exact to the scheduler's clock for a process; one tick (10 ms) for the machine.
Absent    a thread that ended between two reads takes its time with it: servers here keep their threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["busy_seconds", "process_seconds", "total_seconds"]


def process_seconds(pid: int, proc: Path = Path("/proc")) -> float:
    """Return the CPU seconds that the threads of *pid* have used.

    Args:
        pid: A running process.
        proc: The proc file system.

    Raises:
        ProcessLookupError: If there is no such process.
    """
    spent = 0
    try:
        threads = list((proc / str(pid) / "task").iterdir())
    except FileNotFoundError as error:
        raise ProcessLookupError(f"no process {pid}") from error
    for thread in threads:
        try:
            text = (thread / "schedstat").read_text(encoding="ascii")
        except FileNotFoundError:
            continue  # ended since it was listed
        spent += int(text.split()[0])
    return spent / 1e9


def total_seconds(pids: Iterable[int], proc: Path = Path("/proc")) -> float:
    """Return the CPU seconds of several processes together."""
    return sum(process_seconds(pid, proc) for pid in pids)


def busy_seconds(proc: Path = Path("/proc"), ticks_per_second: int | None = None) -> float:
    """Return the core-seconds that the machine has been busy, steal included: what the hypervisor takes is lost to us.

    Args:
        proc: The proc file system.
        ticks_per_second: Unit of /proc/stat; the system's by default.
    """
    line = (proc / "stat").read_text(encoding="ascii").split("\n", 1)[0]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(part) for part in line.split()[1:9])
    ticks = ticks_per_second or os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) / ticks
