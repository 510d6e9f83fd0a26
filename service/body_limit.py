"""Read a request's body within a bound in bytes and in time.

Memory: at most the limit plus one message of the server (64 KiB in uvicorn) for each request in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

from service.errors import Refusal

__all__ = ["Disconnected", "Headers", "Receive", "declared_length", "read_body", "require_json"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Iterable[tuple[bytes, bytes]]

_DRAIN_BYTES: Final = 262_144
"""Most bytes thrown away after a refusal, so that a client that is still sending gets to read it."""
_DRAIN_SECONDS: Final = 0.5

# The server must not wait for the rest of a body that nobody wants.
_CLOSE: Final = {"connection": "close"}


class Disconnected(Exception):  # noqa: N818 - says what is wrong
    """The client went away before it was answered."""


def require_json(headers: Headers) -> None:
    """Accept `application/json`, with or without `charset=utf-8`, said once.

    Raises:
        Refusal: 415 for anything else.
    """
    said = {value.strip().lower() for name, value in headers if name == b"content-type"}
    if said == {b"application/json"}:
        return
    if len(said) == 1:
        kind, *parameters = [part.strip() for part in said.pop().split(b";")]
        charsets = [p.partition(b"=")[2].strip(b'" ') for p in parameters if p.startswith(b"charset")]
        if kind == b"application/json" and all(charset == b"utf-8" for charset in charsets):
            return
    raise Refusal(415, "other", "the content type must be application/json", "content-type")


def declared_length(headers: Headers) -> int | None:
    """Return what Content-Length says, or None when it is missing or no plain number."""
    for name, value in headers:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) <= 18 else None
    return None


async def read_body(receive: Receive, headers: Headers, limit_bytes: int, timeout_seconds: float) -> bytes:
    """Return the whole body.

    The bytes that arrive are counted whatever Content-Length says, which may lie or be missing.

    Args:
        receive: The ASGI callable.
        headers: The request's headers, names in lower case.
        limit_bytes: Most bytes of a body.
        timeout_seconds: Most time for all of it to arrive.

    Raises:
        Refusal: 413 over the limit, 408 when it takes too long.
        Disconnected: If the client went away.
    """
    declared = declared_length(headers)
    if declared is not None and declared > limit_bytes:
        waits = any(name == b"expect" for name, _value in headers)
        if not waits:
            await _drain(receive, declared)
        raise _too_large(limit_bytes)
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _collect(receive, limit_bytes)
    except TimeoutError:
        message = f"the body did not arrive within {timeout_seconds:g} seconds"
        raise Refusal(408, "other", message, "body", _CLOSE) from None


async def _collect(receive: Receive, limit_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        more: bool = message.get("more_body", False)
        if size > limit_bytes:
            chunks.clear()
            if more:
                await _drain(receive, None)
            raise _too_large(limit_bytes)
        if not more:
            return b"".join([*chunks, chunk]) if chunks else chunk
        if chunk:
            chunks.append(chunk)


async def _drain(receive: Receive, expected: int | None) -> None:
    """Throw away what is still coming, within a bound; closing on unread bytes can lose the answer on its way."""
    if expected is not None and expected > _DRAIN_BYTES:
        return
    drained = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while drained <= _DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, "body_too_large", f"the body is over {limit_bytes} bytes", "body", _CLOSE)
