"""The folder of the ring files: who may have it, its key, and old files that nobody needs.

Rows hold session ids, which are personal data, so the folder must be ours alone: 0700, and no symbolic link.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = [
    "FolderRefused",
    "boot_id",
    "is_locked",
    "locked_folder",
    "prepare_folder",
    "read_key",
    "session_hash",
    "session_hashes",
    "sweep",
]

KEY_NAME: Final = "key"
KEY_BYTES: Final = 32
SUFFIX: Final = ".ring"
TRACE_ID: Final = re.compile(rb"[0-9a-f]{32}")


class FolderRefused(OSError):  # noqa: N818  named for what happened
    """The folder cannot hold ring files; ``reason`` is a word for a metric's label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """Return this boot's id as 32 hex digits, zeros where the system has none.

    Args:
        path: Where Linux tells it.
    """
    try:
        return path.read_text().strip().replace("-", "")[:32]
    except OSError:
        return "0" * 32


def prepare_folder(directory: Path) -> None:
    """Create the folder if it is missing and check that it is ours alone.

    Args:
        directory: The folder of the ring files.

    Raises:
        FolderRefused: If it cannot be created or written, belongs to somebody else, or others may enter it.
    """
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        info = directory.lstat()
    except OSError as error:
        raise FolderRefused("folder_unusable", f"{directory}: {error.strerror or error}") from error
    if not stat.S_ISDIR(info.st_mode):
        raise FolderRefused("folder_unusable", f"{directory} is no folder (links are not followed)")
    if info.st_uid != os.geteuid():
        raise FolderRefused("folder_foreign", f"{directory} belongs to user {info.st_uid}; choose another folder")
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise FolderRefused("folder_not_private", f"{directory} is open to others; chmod 700 it")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise FolderRefused("folder_unusable", f"{directory} is not writable")


@contextlib.contextmanager
def locked_folder(directory: Path, patience_s: float = 1.0) -> Iterator[bool]:
    """Hold the folder's lock while workers choose their number, for a second at most.

    Args:
        directory: The folder.
        patience_s: How long to wait; a worker must start even if another one hangs with the lock.

    Yields:
        Whether the lock was had.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + patience_s
        locked = _try_lock(fd)
        while not locked and time.monotonic() < deadline:
            time.sleep(0.01)
            locked = _try_lock(fd)
        yield locked
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Return whether a living process holds the lock of a ring file.

    Args:
        path: The ring file; a missing one is not locked.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        # Shared, so that two readers who ask at once do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_key(directory: Path, create: bool = False, name: str = KEY_NAME) -> bytes:
    """Return the folder's key for keyed hashes of session ids.

    Args:
        directory: The folder of the ring files.
        create: Make the key if there is none; two workers who do so at once get the same one.
        name: The key's file.

    Raises:
        OSError: If there is no key, or it cannot be made.
        ValueError: If the key is damaged.
    """
    path = directory / name
    if create and not path.exists():
        temporary = directory / f".key-{secrets.token_hex(8)}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, secrets.token_bytes(KEY_BYTES))
            # A link, unlike a rename, never replaces the key that another worker was quicker to make.
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            os.close(fd)
            temporary.unlink()
    # Neither a link to what has no end nor a pipe that nobody writes may keep a service from its start.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        key = os.read(fd, KEY_BYTES + 1)
    finally:
        os.close(fd)
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} is not a key of {KEY_BYTES} bytes; remove it and restart the service")
    return key


def session_hash(key: bytes, raw: bytes) -> int:
    """Return the keyed hash by which rows of a session are found.

    Args:
        key: The folder's key.
        raw: The session header's bytes as they came.

    Returns:
        The first 8 bytes of keyed BLAKE2b, big endian, as a number.
    """
    return int.from_bytes(hashlib.blake2b(raw, key=key, digest_size=8).digest(), "big")


def session_hashes(key: bytes, raw: bytes) -> list[int]:
    """Return what the rows of a session may have in their hash column.

    A request that came without a session bears its trace id as one, and the trace id's lower half as its hash.

    Args:
        key: The folder's key.
        raw: A session id: the header's bytes, or a generated one.
    """
    low = [int(raw[16:], 16)] if TRACE_ID.fullmatch(raw) else []
    return [session_hash(key, raw), *low]


def sweep(directory: Path, keep: int, stale_s: float = 60.0) -> int:
    """Remove the oldest ring files of dead workers beyond *keep*, and half-made ones.

    Without it a service that crashes at every start would fill the folder; the exporter removes much earlier.

    Args:
        directory: The folder of the ring files.
        keep: Ring files of dead workers that may stay.
        stale_s: Age at which a half-made file has lost its maker.

    Returns:
        How many ring files were removed.
    """
    dead: list[tuple[float, Path]] = []
    for path in directory.iterdir():
        with contextlib.suppress(OSError):  # another worker may sweep the same folder at the same time
            if path.suffix == SUFFIX and not is_locked(path):
                dead.append((path.stat().st_mtime, path))
            elif path.name.endswith(".new") and time.time() - path.stat().st_mtime > stale_s and not is_locked(path):
                path.unlink()
    removed = 0
    for _, path in sorted(dead)[: max(0, len(dead) - keep)]:
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed
