"""How much room is left on the disks that are written to, in units of the least that is healthy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence
from runbooks.rows import Floats

__all__ = ["LEAST_BYTES", "LEAST_RATIO", "room_left"]

# As in alerts/catalogue/disk_full.yaml. A few percent of a big disk are plenty, and 64 MiB may be most of a small one:
# only both together mean that it is full.
LEAST_RATIO: Final = 0.03
LEAST_BYTES: Final = float(64 << 20)


def room_left(evidence: Evidence) -> list[tuple[str, Floats, Floats]]:
    """Return for each folder the times (unix seconds) and the room left then; below 1 there is none.

    Returns:
        Folder's word, times and room, both shape (n,), where the two gauges of free space are known.
    """
    ratios = {_key(one.labels): one for one in evidence.get(signals.DISK_RATIO) or ()}
    found = []
    for one in evidence.get(signals.DISK_BYTES) or ():
        ratio = ratios.get(_key(one.labels))
        if ratio is None:
            continue
        times, mine, others = np.intersect1d(one.times, ratio.times, return_indices=True)
        room = np.maximum(one.values[mine] / LEAST_BYTES, ratio.values[others] / LEAST_RATIO)
        found.append((str(one.labels.get("folder", "")), times, room))
    return found


def _key(labels: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(labels.get(name) for name in ("job", "instance", "folder"))
