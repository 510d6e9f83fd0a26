"""OTLP over HTTP/1.1: one kept connection, bounded answers, never an exception for what the network does."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import time
from typing import Final
from urllib.parse import urlsplit

from exporters.protobuf_read import read_varint
from exporters.sender import Answer

__all__ = ["HttpTransport", "parse_headers", "rejected_spans"]

# An answer holds a count and a sentence; more is not read.
_MOST_BYTES: Final = 64 << 10


class HttpTransport:
    """Posts bodies to `<endpoint>/v1/traces`."""

    def __init__(self, endpoint: str, *, headers: dict[str, str] | None = None, timeout_seconds: float = 10.0) -> None:
        """Prepare; connects at the first post.

        Args:
            endpoint: `http://host:port`, with a path if the target has one; `/v1/traces` is added unless it ends so.
            headers: Sent with each body.
            timeout_seconds: Longest wait for connecting, and for each read of the answer.

        Raises:
            ValueError: If *endpoint* names no host.
        """
        parts = urlsplit(endpoint)
        if not parts.hostname:
            raise ValueError(f"OTLP endpoint {endpoint!r} names no host; write http://127.0.0.1:4318")
        path = parts.path.rstrip("/")
        self._path = path if path.endswith("/v1/traces") else f"{path}/v1/traces"
        # The standard library: one thread, one connection, one kind of request need no pool.
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout_seconds)
        self._headers = {
            "Content-Type": "application/x-protobuf",
            "User-Agent": "inferdeck-exporter",
            **(headers or {}),
        }

    def post(self, body: bytes, *, compressed: bool) -> Answer:
        """Return the target's answer; status 0 when there was none."""
        headers = {**self._headers, "Content-Encoding": "gzip"} if compressed else self._headers
        # A kept connection that the target closed meanwhile is seen only on use: then once more on a new one.
        for attempt in (1, 2) if self._connection.sock else (2,):
            try:
                self._connection.request("POST", self._path, body, headers)
                response = self._connection.getresponse()
                content = response.read(_MOST_BYTES)
                if response.will_close or not response.isclosed():
                    self._connection.close()
            # Not tried again here: the target may have taken the body, and the sender decides about pauses.
            except TimeoutError:
                self._connection.close()
                return Answer(0)
            # ValueError: a host's name that cannot be one is found out while it is looked up.
            except (OSError, http.client.HTTPException, ValueError):
                self._connection.close()
                if attempt == 2:
                    return Answer(0)
                continue
            return Answer(
                status=response.status,
                retry_after_seconds=_retry_after(response.getheader("Retry-After")),
                rejected_spans=rejected_spans(content) if response.status == 200 else 0,
            )
        return Answer(0)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._connection.close()


def parse_headers(text: str) -> dict[str, str]:
    """Return the headers written as `name=value,name=value` (the form of OTEL_EXPORTER_OTLP_HEADERS).

    Raises:
        ValueError: If a part has no `=` or a line break; the message never holds a value.
    """
    headers = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, found, value = part.partition("=")
        if not found or not name.strip() or any(c in part for c in "\r\n\0"):
            raise ValueError("INFERDECK_EXPORTER_OTLP_HEADERS: write name=value,name=value")
        headers[name.strip()] = value.strip()
    return headers


def _retry_after(value: str | None) -> float:
    """Return the seconds that a Retry-After header asks for (RFC 9110: seconds or a date), at most an hour."""
    text = (value or "").strip()
    # ASCII alone: "²" is a digit to Python, and no number.
    if text.isascii() and text.isdigit():
        return min(float(text), 3600.0)
    try:
        wait = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    # What a date that is none raises depends on where it breaks, down to places in lists.
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError):
        return 0.0
    return min(max(0.0, wait), 3600.0)


def rejected_spans(content: bytes) -> int:
    """Return `partial_success.rejected_spans` of an ExportTraceServiceResponse; 0 when there is none or it is no such.

    Args:
        content: The answer's body: field 1 is partial_success, whose field 1 is an int64.
    """
    if len(content) < 4 or content[0] != 0x0A:
        return 0
    _, start = read_varint(content, 1)
    if start >= len(content) or content[start] != 0x08:
        return 0
    rejected, _ = read_varint(content, start + 1)
    return rejected if rejected < 2**63 else 0
