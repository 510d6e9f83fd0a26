"""The keys by which archived sessions were hashed: the ring folder's own is gone after the machine's next start.

Each is kept as `<fingerprint>.key`, 0600, as long as a segment may need it. Bounded: one a start of the ring folder, or
one a rotation (probes/session_key.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Final

from probes.folder import KEY_BYTES, session_hashes
from probes.reader import RingError, RingFile, list_rings
from probes.session_key import read_keys, retired_keys

__all__ = ["forget_old_keys", "hashes_of", "remember_key"]

_SUFFIX: Final = ".key"
# After a clean-up that went wrong, a look-up must not hash with thousands of keys.
_MOST_KEYS: Final = 256
# A worker reads its key a moment before its ring file begins.
_MARGIN_SECONDS: Final = 60.0


def remember_key(folder: Path, ring_dir: Path) -> None:
    """Keep the ring folder's keys, or note that they were used now; retired ones only while rows of theirs are there.

    Args:
        folder: The archive.
        ring_dir: Folder of ring files; one without a key has no hashes either.

    Raises:
        OSError: If it cannot be written.
    """
    _forget_retired(ring_dir)
    for key in read_keys(ring_dir):
        _remember(folder, key)


def _forget_retired(ring_dir: Path) -> None:
    """Remove the retired keys of a ring folder in which every ring file was begun after their retirement."""
    retired = retired_keys(ring_dir)
    if not retired:
        return
    begun = [time.time()]
    for path in list_rings(ring_dir):
        try:
            with RingFile(path) as ring:
                begun.append(ring.header.started_unix_ns / 1e9)
        except (RingError, OSError):
            # It may be the one that needs them.
            return
    for path, when in retired:
        if when < min(begun) - _MARGIN_SECONDS:
            with contextlib.suppress(OSError):
                path.unlink()


def _remember(folder: Path, key: bytes) -> None:
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
    """Return the hashes that a session's rows may have, those of the ring folder's keys first.

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
    keys = read_keys(ring_dir)
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
