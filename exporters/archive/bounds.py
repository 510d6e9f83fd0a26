"""What the archive may take of the disk: by bytes, by hours, by number of segments, and never the disk's last bytes."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.archive.keys import forget_old_keys
from exporters.archive.segment import list_segments, times_of

__all__ = ["Holding", "Limits", "check_room", "keep_bounds"]

_MOST_SEGMENTS: Final = 4096
_LEFT_FREE_BYTES: Final = 64 << 20
_LEFT_FREE_RATIO: Final = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """When to seal and what to keep.

    Attributes:
        rows: Rows of one segment, at most.
        seconds: Longest time that rows wait for their seal.
        keep_bytes: Bytes of all segments, at most.
        keep_seconds: Segments whose last request ended earlier are removed.
    """

    rows: int = 32_768
    seconds: float = 300.0
    keep_bytes: int = 1 << 30
    keep_seconds: float = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Holding:
    """What the archive holds.

    Attributes:
        used_bytes: Bytes of all segments.
        oldest_unix_ns: When its oldest request started; None when there is none.
    """

    used_bytes: int
    oldest_unix_ns: int | None


def keep_bounds(folder: Path, limits: Limits, now_unix_ns: int) -> Holding:
    """Remove the oldest segments beyond the bounds, and keys that no segment can need; return what is left.

    Args:
        folder: The archive.
        limits: The bounds.
        now_unix_ns: Now, ns since 1970.

    Raises:
        OSError: If a segment cannot be looked at or removed.
    """
    oldest_kept = now_unix_ns - int(limits.keep_seconds * 1e9)
    kept: list[Path] = []
    used, full = 0, False
    # Newest first, so that what is over a bound is the oldest.
    for path in reversed(list_segments(folder)):
        size = path.stat().st_size
        full = full or used + size > limits.keep_bytes or len(kept) >= _MOST_SEGMENTS
        if full or times_of(path)[1] < oldest_kept:
            path.unlink(missing_ok=True)
        else:
            used += size
            kept.append(path)
    # An hour more: a segment can hold rows that are that much older than its key's last use.
    forget_old_keys(folder, limits.keep_seconds + 3600.0)
    return Holding(used, times_of(kept[-1])[0] if kept else None)


def check_room(folder: Path, disk: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage) -> None:
    """Refuse to take a disk's last 64 MiB (of a small disk 5%): the service's logs and our totals need them more.

    Nothing is removed for them: a disk that somebody else fills would eat the evidence, and be full all the same.

    Args:
        folder: The archive.
        disk: Tells total, used and free bytes of the disk that a folder is on.

    Raises:
        OSError: With ENOSPC, if there is less.
    """
    total, _, free = disk(folder)
    if free < min(_LEFT_FREE_BYTES, int(total * _LEFT_FREE_RATIO)):
        raise OSError(errno.ENOSPC, f"{free} free bytes are left to others")
