"""Which version a request is for: the one that its header names, else a share of the sessions.

A session stays with its version, and a larger share keeps those that were in the smaller one. A request without a
session is drawn.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from typing import Final, Literal

__all__ = ["HEADER", "ROLES", "Role", "header_of", "in_share"]

Role = Literal["stable", "canary"]
ROLES: Final[tuple[Role, ...]] = ("stable", "canary")
HEADER: Final = b"x-model-version"
_SESSION: Final = b"x-session-id"
_MOST_BYTES: Final = 256
_WHOLE: Final = 2.0**64

Headers = Iterable[tuple[bytes, bytes]]


def header_of(headers: Headers, name: bytes) -> bytes | None:
    """Return the first value of a header, None if it is not there."""
    for key, value in headers:
        if key == name:
            return value
    return None


def in_share(headers: Headers, share: float, model: str) -> bool:
    """Return whether a request belongs to the share.

    Args:
        headers: The request's.
        share: Share of all sessions, 0..1.
        model: What is rolled out: another model takes another part of the sessions.
    """
    if share <= 0.0:
        return False
    session = header_of(headers, _SESSION)
    if not session:
        return random.random() < share
    digest = hashlib.blake2b(model.encode() + b"\0" + session[:_MOST_BYTES], digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * _WHOLE
