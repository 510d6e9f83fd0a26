"""What blocked an event loop since its start, summed by stack: what the short list of single blocked times forgets.

Measures  per blocking stack how often, for how many seconds, first and last time.
Source    the episodes of probes.event_loop.
Error     stacks that differ in nothing but line numbers are one; beyond 16 of them the rest is one without a stack.
Cost      a dict look-up per blocked time.
Absent    a blocked time without a stack is counted without one.
Explains  event_loop_blocked
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["Blockers"]

# Bound the sums to 32 of the status page's 64 KB, however names are escaped there.
MOST_STACKS: Final = 16
STACK_BYTES: Final = 2000
_LINE: Final = re.compile(r":\d+ ")


class Blockers:
    """Sums blocked times by what blocked."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, ...], dict[str, Any]] = {}

    def add(self, episode: dict[str, Any]) -> None:
        """Count a blocked time.

        Args:
            episode: Its ``start_unix_ns``, ``duration_ns`` and ``stack``.
        """
        stack = _bounded(episode["stack"])
        key = tuple(_LINE.sub(" ", line) for line in stack)
        if key not in self._sums and len(self._sums) >= MOST_STACKS - 1:
            key, stack = (), []
        start = episode["start_unix_ns"]
        known = self._sums.get(key) or {"stack": stack, "count": 0, "total_ns": 0, "first_unix_ns": start}
        # Replaced as a whole: another thread may read meanwhile.
        self._sums[key] = {
            **known,
            "count": known["count"] + 1,
            "total_ns": known["total_ns"] + episode["duration_ns"],
            "last_unix_ns": start + episode["duration_ns"],
        }

    def reading(self) -> list[dict[str, Any]]:
        """Return the sums, those of most time first."""
        return sorted(self._sums.copy().values(), key=lambda one: -int(one["total_ns"]))


def _bounded(stack: list[str]) -> list[str]:
    """Return the innermost lines that fit."""
    kept, size = [], 0
    for line in stack:
        size += len(json.dumps(line)) + 1
        if size > STACK_BYTES:
            break
        kept.append(line)
    return kept
