"""The key of the hashes by which rows of a session are found: from a secret on disk, and what came before it.

The secret is a file of 32 random bytes, 0600, in the state folder; it is made at the first start, and outlives the ring
folder, which is gone after the machine's next start. A worker takes it up when it opens its ring file: it becomes the
ring folder's `key`, and a key that it replaces stays beside it as `key-<fingerprint>.old`. Readers need the ring folder
alone. Without a state folder, or with one that cannot be written, the ring folder has a random key of its own.

Bounds   `MOST_RETIRED` retired keys in a ring folder; the archive keeps its own as long as its segments.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from probes.folder import KEY_BYTES, KEY_NAME, read_key

__all__ = ["MOST_RETIRED", "RETIRED", "Retired", "current_key", "read_keys", "retired_keys", "rotate", "secret_path"]

FILE_NAME: Final = "session.key"
RETIRED: Final = "key-*.old"
MOST_RETIRED: Final = 16
Retired = tuple[Path, float]


def secret_path(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return where the secret is, or None when nothing says where.

    Args:
        environ: INFERDECK_KEY_FILE wins; INFERDECK_STATE_DIR is the folder that it lies in otherwise.
    """
    if environ.get("INFERDECK_KEY_FILE"):
        return Path(environ["INFERDECK_KEY_FILE"])
    return Path(environ["INFERDECK_STATE_DIR"]) / FILE_NAME if environ.get("INFERDECK_STATE_DIR") else None


def current_key(directory: Path, secret: Path | None) -> bytes:
    """Return the key that a worker that starts now hashes with, and make it the ring folder's.

    Args:
        directory: Folder of the ring files.
        secret: The secret; one that is not there is made, from the folder's key if that has one already.

    Raises:
        OSError: If the folder's key cannot be made.
        ValueError: If the secret or the folder's key is damaged: to make another one in silence would lose sessions.
    """
    wanted = None if secret is None else _secret(secret, directory)
    path = directory / KEY_NAME
    if wanted is None:
        return read_key(directory, create=True)
    if not path.exists():
        _link(path, wanted)
    present = read_key(directory)
    if present != wanted:
        # Kept first: a kill between the two leaves a key that is found twice, not one that is lost.
        _retire(directory, present)
        _replace(path, wanted)
        for old, _ in retired_keys(directory)[MOST_RETIRED:]:
            old.unlink(missing_ok=True)
    return wanted


def read_keys(directory: Path) -> list[bytes]:
    """Return the keys that rows in a folder may be hashed with, the present one first; damaged ones are left out.

    Args:
        directory: Folder of the ring files.
    """
    found: list[bytes] = []
    with contextlib.suppress(OSError, ValueError):
        found.append(read_key(directory))
    for path, _ in retired_keys(directory)[:MOST_RETIRED]:
        with contextlib.suppress(OSError, ValueError):
            found.append(read_key(directory, name=path.name))
    return list(dict.fromkeys(found))


def retired_keys(directory: Path) -> list[Retired]:
    """Return the files of retired keys with the unix seconds of their retirement, the latest first."""
    found: list[Retired] = []
    with contextlib.suppress(OSError):
        for path in directory.glob(RETIRED):
            with contextlib.suppress(OSError):
                found.append((path, path.lstat().st_mtime))
    return sorted(found, key=lambda one: one[1], reverse=True)


def rotate(secret: Path) -> str:
    """Put another secret in place; workers take it up at their next start. Return its fingerprint.

    Args:
        secret: The file; one that is missing is made.

    Raises:
        OSError: If it cannot be written.
    """
    secret.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = secrets.token_bytes(KEY_BYTES)
    _replace(secret, key)
    return _fingerprint(key)


def _secret(secret: Path, directory: Path) -> bytes | None:
    """Return the secret, made if it is missing; None where it can neither be read nor made."""
    try:
        if not secret.exists():
            secret.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(OSError, ValueError):
                _link(secret, read_key(directory))
            if not secret.exists():
                _link(secret, secrets.token_bytes(KEY_BYTES))
        return read_key(secret.parent, name=secret.name)
    except OSError:
        return None


def _fingerprint(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=8, person=b"session-key").hexdigest()


def _retire(directory: Path, key: bytes) -> None:
    path = directory / f"key-{_fingerprint(key)}.old"
    _link(path, key)
    # It may have been retired before.
    os.utime(path)


def _link(path: Path, key: bytes) -> None:
    """Make a file with a key unless somebody else was quicker."""
    unfinished = _written(path.parent, key)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        unfinished.unlink()


def _replace(path: Path, key: bytes) -> None:
    _written(path.parent, key).replace(path)


def _written(folder: Path, key: bytes) -> Path:
    """Write a key to a file of its own, 0600, and return it."""
    path = folder / f".key-{secrets.token_hex(8)}"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return path
