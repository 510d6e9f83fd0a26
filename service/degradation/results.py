"""Answers that are fetched later: one small file each, in a private folder that all workers of a service share.

An id is 16 random bytes, the second in which it expires, and a keyed hash of both: whoever guesses gets 404 without a
look at the disk, and any worker can tell a result that has expired (410) from one that never was (404).

Memory: `places` files over all workers, each at most 512 bytes and one page; expired ones are swept once a second while
anything is asked. A worker counts what others hold as of its last sweep, so workers that accept in the same second may
together go over by what they accepted in it. Holds no text: a sentiment, a confidence, why degraded.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from probes.folder import FolderRefused, prepare_folder
from probes.private_file import write_private

__all__ = ["EVENTS", "Found", "ResultStore"]

_log = logging.getLogger("service.results")

Event = Literal["accepted", "stored", "fetched", "expired", "failed", "no_room"]
EVENTS: Final[tuple[Event, ...]] = ("accepted", "stored", "fetched", "expired", "failed", "no_room")
Found = dict[str, Any] | Literal["pending", "expired", "unknown"]

_RANDOM, _TIME, _MAC = 16, 5, 12
_ID_HEX: Final = 2 * (_RANDOM + _TIME + _MAC)
_MOST_BYTES: Final = 512
_SWEEP_SECONDS: Final = 1.0
_DIGITS: Final = frozenset("0123456789abcdef")


class ResultStore:
    """The store of one worker.

    Args:
        folder: Shared by the workers; created if it is missing.
        places: Most results, those that are still worked on included.
        seconds: How long one may be fetched.
        clock: Seconds since 1970.
    """

    def __init__(self, folder: Path, places: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self.seconds = seconds
        self.counts: Counter[Event] = Counter()
        self._folder, self._places, self._clock = folder, places, clock
        self._key: bytes | None = None
        self._held = 0
        self._swept = self._tried = -1e9
        self._said = False
        self._lock = threading.Lock()

    def _open(self) -> None:
        """Prepare folder and key once they are needed; one that cannot be used is said, and tried again in a second."""
        if self._key is not None or 0 <= self._clock() - self._tried < _SWEEP_SECONDS:
            return
        self._tried = self._clock()
        try:
            # The parent first, which would otherwise be made as open as the umask says.
            prepare_folder(self._folder.parent)
            prepare_folder(self._folder)
            self._key = _key(self._folder / "key")
        except (FolderRefused, OSError) as error:
            if not self._said:
                _log.error("no answers can be fetched later: %s", error)
            self._said = True

    def accept(self) -> str | None:
        """Return the id of a result that will come, None where there is no room."""
        self._open()
        self.sweep()
        if self._key is None or self._held >= self._places:
            self._count("no_room")
            return None
        head = secrets.token_bytes(_RANDOM) + int(self._clock() + self.seconds).to_bytes(_TIME, "big")
        number = (head + self._mac(self._key, head)).hex()
        try:
            write_private(self._folder / number, b"")
        except OSError as error:
            self._fail(error)
            return None
        self._held += 1
        self._count("accepted")
        return number

    def put(self, number: str, result: dict[str, Any]) -> None:
        """Store a result; from any thread. One that cannot be stored stays pending until it expires."""
        content = json.dumps(result).encode()
        try:
            if len(content) > _MOST_BYTES:
                raise OSError(0, f"a result of {len(content)} bytes")
            write_private(self._folder / number, content)
        except OSError as error:
            self._fail(error)
        else:
            self._count("stored")

    def get(self, number: str) -> Found:
        """Return a result, or where it is."""
        if self._key is None and (self._folder / "key").exists():
            self._open()
        if self._key is None or len(number) != _ID_HEX or not _DIGITS.issuperset(number):
            return "unknown"
        raw = bytes.fromhex(number)
        head, mac = raw[:-_MAC], raw[-_MAC:]
        if not hmac.compare_digest(mac, self._mac(self._key, head)):
            return "unknown"
        if self._clock() >= int.from_bytes(head[_RANDOM:], "big"):
            self.sweep()
            return "expired"
        try:
            content = (self._folder / number).read_bytes()
        except FileNotFoundError:
            return "expired"
        except OSError as error:
            self._fail(error)
            return "pending"
        if not content:
            return "pending"
        found: dict[str, Any] = json.loads(content)
        self._count("fetched")
        return found

    def sweep(self) -> None:
        """Remove what has expired, and count what is held; at most once a second."""
        now = self._clock()
        if self._key is None or 0 <= now - self._swept < _SWEEP_SECONDS:
            return
        self._swept = now
        held = 0
        try:
            with os.scandir(self._folder) as entries:
                names = [entry.name for entry in entries]
        except OSError as error:
            self._fail(error)
            return
        for name in names:
            if len(name) != _ID_HEX or not _DIGITS.issuperset(name):
                continue
            expires = int(name[2 * _RANDOM : 2 * (_RANDOM + _TIME)], 16)
            if now < expires:
                held += 1
                continue
            # Several workers sweep; whoever removes it counts it.
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
                self._count("expired")
        self._held = held

    def _count(self, event: Event) -> int:
        with self._lock:  # the loop's thread and the one that stores
            self.counts[event] += 1
            return self.counts[event]

    def _fail(self, error: OSError) -> None:
        if self._count("failed") == 1:
            _log.error("a result cannot be kept: %s", error.strerror or error)

    @staticmethod
    def _mac(key: bytes, head: bytes) -> bytes:
        return hashlib.blake2b(head, key=key, digest_size=_MAC).digest()


def _key(path: Path) -> bytes:
    """Return the folder's key, made by the first worker: linked into place whole, so that no other reads half of it."""
    own = path.with_name(f".key.{secrets.token_hex(8)}")
    handle = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):
            os.link(own, path)
    finally:
        own.unlink()
    key = path.read_bytes()
    if len(key) != 32:
        raise OSError(0, f"{path} is no key; remove it")
    return key
