"""The keys by which archived sessions were hashed: the ring folder's own is gone after the machine's next start.

Each is kept as `<fingerprint>.key`, 0600, as long as a segment may need it. Bounded: one a start of the ring folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Final

from probes.folder import KEY_BYTES, read_key, session_hashes

__all__ = ["forget_old_keys", "hashes_of", "remember_key"]

_SUFFIX: Final = ".key"
# After a clean-up that went wrong, a look-up must not hash with thousands of keys.
_MOST_KEYS: Final = 256


def remember_key(folder: Path, ring_dir: Path) -> None:
    """Keep the ring folder's key, or note that it was used now.

    Args:
        folder: The archive.
        ring_dir: Folder of ring files; one without a key has no hashes either.

    Raises:
        OSError: If it cannot be written.
    """
    try:
        key = read_key(ring_dir)
    except (OSError, ValueError):
        return
    path = folder / (hashlib.blake2b(key, digest_size=8, person=b"archive-key").hexdigest() + _SUFFIX)
    with contextlib.suppress(FileNotFoundError):
        os.utime(path)
        return
    unfinished = path.with_suffix(".part")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(key)
    unfinished.replace(path)


def forget_old_keys(folder: Path, unused_seconds: float) -> None:
    """Remove keys with which nothing was archived for so long that no segment can need them.

    Args:
        folder: The archive.
        unused_seconds: The time.
    """
    for path in _key_files(folder):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > unused_seconds:
                path.unlink()


def hashes_of(session_id: str, ring_dir: Path, folder: Path | None = None) -> list[int]:
    """Return the hashes that a session's rows may have, that of the ring folder's key first.

    Args:
        session_id: As it came in the header; a surrogate stands for a byte of the command line that is no UTF-8.
        ring_dir: Folder of ring files.
        folder: The archive.
    """
    try:
        raw = session_id.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate that stands for no byte: no header can hold it.
        return []
    keys: list[bytes] = []
    with contextlib.suppress(OSError, ValueError):
        keys.append(read_key(ring_dir))
    for path in _key_files(folder) if folder else []:
        with contextlib.suppress(OSError):
            keys.append(path.read_bytes())
    # Damaged ones are left out: with another key nothing is found, and nothing else can be done about it.
    whole = [key for key in keys if len(key) == KEY_BYTES]
    return list(dict.fromkeys(number for key in whole for number in session_hashes(key, raw)))


def _key_files(folder: Path) -> list[Path]:
    """Return the kept keys, the latest first."""
    found = []
    with contextlib.suppress(OSError):
        for path in folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)[:_MOST_KEYS]]
