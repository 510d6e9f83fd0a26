"""What the headers of a request say: trace, session, client. Pure functions over bytes; nothing here raises.

Source    W3C Trace Context level 1 (traceparent); W3C Baggage; requirements row B3 (session ids); docs/architecture.md
          section 2.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

__all__ = [
    "DEVICE_TYPES",
    "METHODS",
    "SESSION_KEY",
    "agent_family",
    "baggage_session",
    "client_release",
    "parse_traceparent",
    "valid_session",
]

DEVICE_TYPES: Final = (b"mobile", b"web", b"app")
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

# The key in baggage under which the session goes along: OpenTelemetry's name for it.
SESSION_KEY: Final = "session.id"
MOST_BAGGAGE_BYTES: Final = 8192  # W3C's own limit

# A pattern and not int(): that takes underscores, signs and spaces, which W3C does not.
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
# With fullmatch, since $ would let a line break at the end through.
_SESSION = re.compile(rb"[A-Za-z0-9_-]{16,32}")
_RELEASE = re.compile(rb"[A-Za-z0-9._+-]{1,40}")
# Order matters: Edge and Chrome also call themselves Safari, and everybody is Mozilla.
_FAMILIES: Final = (
    (b"edg", "edge"),
    (b"opr/", "opera"),
    (b"firefox", "firefox"),
    (b"micromessenger", "wechat"),
    (b"okhttp", "okhttp"),
    (b"cfnetwork", "cfnetwork"),
    (b"dart", "dart"),
    (b"python", "python"),
    (b"httpx", "python"),
    (b"curl", "curl"),
    (b"wget", "wget"),
    (b"go-http", "go"),
    (b"java", "java"),
    (b"axios", "node"),
    (b"node", "node"),
    (b"wrk", "wrk"),
    (b"bot", "bot"),
    (b"spider", "bot"),
    (b"chrome", "chrome"),
    (b"crios", "chrome"),
    (b"iphone", "safari_ios"),
    (b"ipad", "safari_ios"),
    (b"safari", "safari"),
)


def parse_traceparent(value: bytes) -> tuple[int, int, bool] | None:
    """Return trace id, parent span id and the sampled flag of a traceparent header, or None if it is not valid.

    Args:
        value: The header's bytes.
    """
    match = _TRACEPARENT.fullmatch(value) if len(value) <= 512 else None
    if match is None:
        return None
    version, trace, span, flags, rest = match.groups()
    # Version 00 ends after the flags; later ones may append fields, ff is forbidden.
    if version == b"ff" or (version == b"00" and rest):
        return None
    trace_id, span_id = int(trace, 16), int(span, 16)
    return (trace_id, span_id, bool(int(flags, 16) & 1)) if trace_id and span_id else None


def valid_session(value: bytes) -> bool:
    """Return whether a session id is one: 16 to 32 letters, digits, ``_`` or ``-``.

    Args:
        value: The header's bytes.
    """
    return _SESSION.fullmatch(value) is not None


def baggage_session(value: bytes) -> bytes:
    """Return the session of a baggage header, percent-decoded; empty when it has none.

    Args:
        value: The header's bytes; none of more than W3C's 8,192 are looked at.
    """
    key = SESSION_KEY.encode()
    # The first look spares the rest for baggage of others.
    if len(value) > MOST_BAGGAGE_BYTES or key not in value:
        return b""
    for member in value.split(b","):
        # properties after a semicolon belong to the member, not to its value
        name, _, text = member.partition(b";")[0].partition(b"=")
        if name.strip(b" \t") == key:
            return unquote_to_bytes(text.strip(b" \t"))
    return b""


def client_release(value: bytes) -> str:
    """Return the client's release, or "" if it is none that could be a label.

    Args:
        value: The header's bytes.
    """
    return value.decode() if _RELEASE.fullmatch(value) else ""


def agent_family(value: bytes) -> str:
    """Return the family of a user agent, one of a closed list; "other" for the rest.

    The agent itself is never stored: it tells people apart, and a list that clients can extend is no label.

    Args:
        value: The header's bytes; the first 512 count.
    """
    agent = value[:512].lower()
    return next((family for mark, family in _FAMILIES if mark in agent), "other")
