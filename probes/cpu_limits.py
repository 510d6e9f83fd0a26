"""Whether the process may compute when it wants to: the quota of its control group.

Measures  periods of the quota, and those in which the group was throttled; since the worker's start.
Source    cpu.stat of the process's control group and of those above it, version 1 or 2 (Linux,
          Documentation/admin-guide/cgroup-v2.rst).
Error     of several groups with a quota the one that is throttled most counts; what happened before the first look is
          not known.
Cost      two small files a second, about 60 us.
Absent    without a quota there are no periods: nothing is told, never 0.
Explains  cpu_throttled
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["CpuLimits"]


class CpuLimits:
    """Adds up what the groups of one process tell from look to look.

    Args:
        groups: The process's list of groups.
        root: Where control groups are mounted.
    """

    def __init__(self, groups: Path | str = "/proc/self/cgroup", root: Path | str = "/sys/fs/cgroup") -> None:
        self._groups = Path(groups)
        self._root = Path(root)
        self._last: dict[Path, tuple[int, int]] = {}
        self._periods = self._throttled = 0

    def reading(self) -> dict[str, Any]:
        """Return the status page's part; empty without a quota."""
        found = {path: counts for path in self._paths() if (counts := _counts(path)) is not None}
        grown = [
            (counts[1] - last[1], counts[0] - last[0])
            for path, counts in found.items()
            if (last := self._last.get(path)) is not None and counts[0] >= last[0]
        ]
        # A process may be moved: what another group counted before is not its own.
        self._last = found
        if grown:
            throttled, periods = max(grown)
            self._throttled += max(throttled, 0)
            self._periods += periods
        return {"cpu_limit": {"periods": self._periods, "throttled": self._throttled}} if found else {}

    def _paths(self) -> list[Path]:
        """Return the files that may tell of a quota, the process's own group first."""
        try:
            lines = self._groups.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return []
        paths: list[Path] = []
        for line in lines:
            number, _, rest = line.partition(":")
            controllers, _, group = rest.partition(":")
            # Version 2 has one line, "0::/path"; of version 1 the controller is mounted by its name.
            if number == "0" and not controllers:
                base = self._root
            elif "cpu" in controllers.split(","):
                base = self._root / next((name for name in (controllers, "cpu") if (self._root / name).is_dir()), "cpu")
            else:
                continue
            parts = [part for part in group.split("/") if part not in ("", "..")]
            paths += [base.joinpath(*parts[:depth], "cpu.stat") for depth in range(len(parts), -1, -1)]
        return paths[:32]


def _counts(path: Path) -> tuple[int, int] | None:
    """Return the periods of a quota and those that were throttled; None where there is no quota or no such file."""
    try:
        pairs = dict(line.split()[:2] for line in path.read_text(encoding="ascii").splitlines() if " " in line)
        periods = int(pairs["nr_periods"])
        return (periods, int(pairs["nr_throttled"])) if periods else None
    except (OSError, KeyError, ValueError):
        return None
