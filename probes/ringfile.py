"""Making a ring file: fully allocated, private, locked by its owner; or, if it cannot be had, an anonymous mapping.

Space is allocated before it is mapped: writing to a sparse mapping on a full disk kills the process by SIGBUS.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from probes.folder import SUFFIX, FolderRefused, boot_id, is_locked, locked_folder, prepare_folder, sweep
from probes.layout import RingError, encode_header, plan_layout
from probes.reader import RingFile
from probes.session_key import current_key, secret_path
from probes.settings import Identity, RecorderSettings
from probes.writer import RingWriter

__all__ = ["OwnedRing", "open_anonymous", "open_ring"]

# Nobody can read an anonymous ring: it only keeps the writing path alive, so it is small.
ANONYMOUS_ROWS: Final = 64
# Populated at once: otherwise every fourth request of the first lap would take a page fault.
SHARED: Final = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)

Count = Callable[[str], None]


@dataclass(slots=True)
class OwnedRing:
    """A ring that this process writes.

    Attributes:
        writer: Its writing end.
        key: The folder's key for session hashes.
        path: The file, or None for an anonymous ring.
        fd: The descriptor that holds the lock, or -1.
        loss: Why its rows cannot be read, or None.
    """

    writer: RingWriter
    key: bytes
    path: Path | None = None
    fd: int = -1
    loss: str | None = None

    def close(self) -> None:
        """Give mapping and lock up; the file stays for its readers."""
        self.writer.close()
        self._unlock()

    def abandon(self) -> None:
        """Give up in a forked child what belongs to its parent."""
        self.writer.abandon()
        self._unlock()

    def _unlock(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _meta(service: str, identity: Identity, worker: int, boot: str, ring_id: str) -> dict[str, Any]:
    texts = {
        "service": service,
        "host": identity.host,
        "build": identity.build,
        "config": identity.config,
        "model": identity.model,
        "driver": identity.driver,
    }
    return {
        **{name: value[:200] for name, value in texts.items()},
        "pid": os.getpid(),
        "worker": worker,
        "boot_id": boot,
        "ring_id": ring_id,
        "started_unix_ns": time.time_ns(),
        "started_monotonic_ns": time.monotonic_ns(),
    }


def open_anonymous(service: str, identity: Identity, settings: RecorderSettings, count: Count, loss: str) -> OwnedRing:
    """Return a ring without a file.

    Args:
        service: Name of the service.
        identity: Fingerprints.
        settings: Sizes.
        count: Called with a reason when something is refused.
        loss: Why there is no file; a word for a metric's label.
    """
    layout = plan_layout(settings.row_bytes, min(settings.ring_rows, ANONYMOUS_ROWS), settings.open_slots)
    buffer = mmap.mmap(-1, layout.total)
    header = encode_header(_meta(service, identity, 0, boot_id(), secrets.token_hex(8)), layout)
    buffer[: len(header)] = header
    return OwnedRing(RingWriter(buffer, layout, count), secrets.token_bytes(32), loss=loss)


def open_ring(directory: Path, service: str, identity: Identity, settings: RecorderSettings, count: Count) -> OwnedRing:
    """Make a ring file for this process.

    Args:
        directory: The folder of the ring files.
        service: Name of the service.
        identity: Fingerprints.
        settings: Sizes.
        count: Called with a reason when something is refused.

    Raises:
        FolderRefused: If the folder or the file cannot be had; its ``reason`` says why in a word.
    """
    layout = plan_layout(settings.row_bytes, settings.ring_rows, settings.open_slots)
    prepare_folder(directory)
    ring_id, boot = secrets.token_hex(8), boot_id()
    path = directory / f"{boot[:8]}-{ring_id}{SUFFIX}"
    half_made = path.with_suffix(".new")
    fd = -1
    try:
        key = current_key(directory, secret_path())
        sweep(directory, settings.dead_rings)
        with locked_folder(directory):
            meta = _meta(service, identity, _free_number(directory, service), boot, ring_id)
            fd = os.open(half_made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            # Locked before it has its name, so that no reader ever sees it ownerless.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _allocate(fd, layout.total)
            os.pwrite(fd, encode_header(meta, layout), 0)
            writer = RingWriter(mmap.mmap(fd, layout.total, flags=SHARED), layout, count)
            half_made.rename(path)
        return OwnedRing(writer, key, path, fd)
    except (OSError, ValueError) as error:
        if fd >= 0:
            os.close(fd)
        with contextlib.suppress(OSError):
            half_made.unlink()
        raise FolderRefused(_reason(error), f"{directory}: {error}") from error


def _allocate(fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.EINVAL}:
            raise
        # Some file systems cannot allocate; zeros take the space as well.
        page = bytes(1 << 16)
        for at in range(0, size, len(page)):
            os.pwrite(fd, page[: size - at], at)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FolderRefused):
        return error.reason
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return "disk_full"
    return "file_unusable"


def _free_number(directory: Path, service: str) -> int:
    """Return the lowest worker number that no living worker of this service has."""
    taken = set()
    for path in directory.iterdir():
        if path.suffix == SUFFIX and is_locked(path):
            with contextlib.suppress(RingError, OSError), RingFile(path) as ring:
                if ring.header.service == service:
                    taken.add(ring.header.worker)
    return next(number for number in range(len(taken) + 1) if number not in taken)
