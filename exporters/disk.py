"""The room that is left where this product writes: for the exporter's state, and for the rows.

Measures  free space of the file system under a folder, bytes and ratio 0..1 of what a user may fill.
Source    statvfs(2), as df reads it: blocks that are kept for root count as used.
Error     a quota of one user is not seen; a write that fails for it is counted by reason all the same.
Cost      one system call a folder and scrape.
Absent    a folder that is not there, or a file system without a size, has no value.
Explains  why state, reports, archive or a new worker's rows cannot be written -> runbooks
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from exporters.gauges import Gauges
from exporters.totals import Labels

__all__ = ["NO_SPACE", "free_space", "write_error_reason"]

# What the kernel says when a disk, or a user's share of it, is full.
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def free_space(folders: Mapping[str, Path], statvfs: Callable[[Path], Any] = os.statvfs) -> Gauges:
    """Return the gauges of free space.

    Args:
        folders: Folder by the word that its label shows.
        statvfs: Returns an object with `f_frsize`, `f_blocks`, `f_bfree` and `f_bavail`, as `os.statvfs` does.
    """
    free: dict[Labels, float] = {}
    shares: dict[Labels, float] = {}
    for word, folder in folders.items():
        try:
            found = statvfs(folder)
        except OSError:
            continue
        # As df has it: what is used, and what is left to somebody who is not root.
        usable = found.f_blocks - found.f_bfree + found.f_bavail
        if usable > 0:
            free[(word,)] = float(found.f_bavail * found.f_frsize)
            shares[(word,)] = found.f_bavail / usable
    return {"runtime_disk_free_bytes": free, "runtime_disk_free_ratio": shares}


def write_error_reason(error: OSError) -> str:
    """Return the word for a write that failed."""
    return "disk_full" if error.errno in NO_SPACE else "unwritable"
