"""The one way in which a small file of ours is replaced: private, and whole or not at all.

Used by control page, exporter's state, reports, waiting incidents and the stack's record; rings and segments, which are
large or mapped, are written otherwise.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["leftovers", "write_private"]


def write_private(
    path: Path, content: bytes, *, flush: bool = False, replace: Callable[[Path, Path], Any] = os.replace
) -> None:
    """Write a file (0600) so that every reader sees the old or the new content, never half of it.

    Args:
        path: Where; its folder exists.
        content: All of it.
        flush: Also wait until it is on the disk, for what must be there after a power cut.
        replace: Renames the finished new file over the old one.

    Raises:
        OSError: If it cannot be written; it names *path*, the old file is still there, and nothing is left behind.
    """
    # Beside the target, because a rename is atomic only within one file system; a name of its own, so that two writers
    # never write into one file, and nobody's link is followed.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if flush:
                os.fsync(handle)
        replace(temporary, path)
    except BaseException as error:
        # On a full disk the half-written file would keep the space that the next try needs.
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            # A write that fails names no file; whoever reads the line must know which disk is full.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def leftovers(path: Path) -> list[Path]:
    """Return what killed writers of *path* left half-written; only one that nobody writes meanwhile may remove it."""
    return sorted(path.parent.glob(f".{path.name}.{'[0-9a-f]' * 16}"))
