"""Who may change the archive: the exporter that seals and removes, or somebody who erases a session; never both."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["archive_lock"]

_NAME: Final = "lock"


@contextlib.contextmanager
def archive_lock(folder: Path, patience_seconds: float = 0.0) -> Iterator[bool]:
    """Hold the archive's lock, and make the folder when it is missing.

    Args:
        folder: The archive.
        patience_seconds: How long to wait for another holder.

    Yields:
        Whether the lock was had.

    Raises:
        OSError: If the folder cannot be made or written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Session ids are in it: an archive that others may enter is made private, whoever made it so.
    folder.chmod(0o700)
    fd = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # The kernel gives it free however the holder ends.
        yield _taken(fd, time.monotonic() + patience_seconds)
    finally:
        os.close(fd)


def _taken(fd: int, deadline: float) -> bool:
    """Return whether the lock was had before *deadline*, monotonic seconds."""
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True
