"""How much memory a model may take: of the machine, or of the container if that allows less (requirements B11).

Measures  memory in all, and what processes hold of it, bytes.
Source    psutil for the machine; memory.max, memory.current and memory.stat of the control group and those above it.
Error     pages of files that the kernel would give back count as free, as kubelet's working set has it.
Cost      a few small files, once per load.
Absent    without a control group, or one without a limit, the machine's figures alone.
Explains  a container that is killed while it loads, on a machine with memory to spare -> service/loading.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Memory", "available_memory"]


@dataclass(frozen=True)
class Memory:
    """Memory of one machine or container.

    Attributes:
        total_bytes: All that there is, or may be taken.
        used_bytes: What processes hold of it.
        place: Whose limit it is: "machine" or "container".
    """

    total_bytes: int
    used_bytes: int
    place: str = "machine"

    @property
    def left_bytes(self) -> int:
        """What nobody holds; negative where a limit was set below what is held."""
        return self.total_bytes - self.used_bytes


def available_memory(
    machine: Callable[[], Any] = psutil.virtual_memory,
    cgroup_root: Path = Path("/sys/fs/cgroup"),
    own_cgroup: Path = Path("/proc/self/cgroup"),
) -> Memory:
    """Return the memory of whatever allows least.

    Args:
        machine: Returns an object with `total` and `available` in bytes, as `psutil.virtual_memory` does.
        cgroup_root: Where control groups are mounted (version 2).
        own_cgroup: Where the kernel tells a process its control group.
    """
    whole = machine()
    found = [Memory(whole.total, whole.total - whole.available)]
    found += [memory for folder in _own_folders(cgroup_root, own_cgroup) if (memory := _limit(folder))]
    return min(found, key=lambda memory: memory.left_bytes)


def _own_folders(root: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of the process's control group and of all above it: a limit holds for whatever is below."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if path is None:
        return
    # In a container with a namespace of its own, the path is "/", and its limit lies in the root's own files.
    folder = root / path.lstrip("/")
    while True:
        yield folder
        if folder == root or root not in folder.parents:
            return
        folder = folder.parent


def _limit(folder: Path) -> Memory | None:
    """Return what a control group allows and holds; None where it has no limit."""
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        if not limit.isdecimal():
            return None
        held = int((folder / "memory.current").read_text(encoding="ascii"))
        words = (line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        idle = next((int(word[1]) for word in words if word[0] == "inactive_file"), 0)
    except (OSError, ValueError, IndexError):
        return None
    return Memory(int(limit), max(0, held - idle), "container")
