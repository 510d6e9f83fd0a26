"""What a stored report may not hold: session ids are personal data, secrets never belong in a file."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

__all__ = ["redact"]

_SESSION_KEYS: Final = frozenset({"session", "session_id", "session.id"})
_SECRET_KEY: Final = re.compile(r"(?i)(token|secret|passw|authorization|api[-_]?key|cookie)")
_SECRET_TEXT: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}|\b[\w.+-]+@[\w-]+\.[\w.]+")


def redact(value: Any, key: str = "") -> Any:
    """Return a copy without session ids and secrets.

    A session id becomes the first 8 hex digits of its SHA-256: two reports about one session can still be joined.

    Args:
        value: JSON value.
        key: The key that it stands under.
    """
    if isinstance(value, dict):
        return {name: redact(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [redact(one, key) for one in value]
    if not isinstance(value, str):
        return value
    if key in _SESSION_KEYS and value:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:8]}"
    if _SECRET_KEY.search(key):
        return "(removed)"
    return _SECRET_TEXT.sub("(removed)", value)
