"""Who is served first: by the product's id, or by a header that only who holds the key can write (row B4)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

__all__ = ["PRIORITY_HEADER", "KeyUnusable", "PriorityRule", "priority_token", "read_key"]

PRIORITY_HEADER: Final = b"x-priority-token"
_KEY_BYTES: Final = 16


class KeyUnusable(ValueError):  # noqa: N818 - says what is wrong
    """The file of the key cannot be used; the message is one line without its content."""


def read_key(path: Path) -> bytes:
    """Return the key of a file that belongs to its owner alone.

    Raises:
        KeyUnusable: If it cannot be read, is open to others, or too short to be a secret.
    """
    try:
        mode = path.stat().st_mode
        key = path.read_bytes().strip()
    except OSError as error:
        raise KeyUnusable(f"the key of the priority header cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise KeyUnusable("the key of the priority header can be read by others; mend: chmod 600")
    if len(key) < _KEY_BYTES:
        raise KeyUnusable(f"the key of the priority header has fewer than {_KEY_BYTES} bytes")
    return key


def priority_token(key: bytes, product_id: str) -> str:
    """Return what the header must say for a product: HMAC-SHA256 in hexadecimal."""
    return hmac.new(key, product_id.encode(), hashlib.sha256).hexdigest()


class PriorityRule:
    """Decides who is a VIP.

    Args:
        ids: Products that are.
        prefixes: What the ids of products that are begin with.
        key: Key of the header, None if the header says nothing.
    """

    def __init__(self, ids: Collection[str] = (), prefixes: Iterable[str] = (), key: bytes | None = None) -> None:
        self._ids = frozenset(ids)
        self._prefixes = tuple(prefixes)
        self._key = key

    def get_priority(self, product_id: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request for a product is a VIP's."""
        if product_id in self._ids or (self._prefixes and product_id.startswith(self._prefixes)):
            return True
        if self._key is None:
            return False
        said = [value for name, value in headers if name == PRIORITY_HEADER]
        # compare_digest, so that the time of the answer tells nothing about the right token
        return len(said) == 1 and hmac.compare_digest(said[0], priority_token(self._key, product_id).encode())
