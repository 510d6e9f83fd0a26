"""Bounds on one connection of an HTTP server: a head in bytes and time, and how many requests wait for their turn.

uvicorn with httptools keeps whatever comes until the head is complete: a header without end is kept without end, and a
head that never completes holds its connection for ever. It also makes a request of all that one read of the socket
holds: 13,000 of 20 bytes, 14 MB, from a client that reads no answer. A normal request pays two comparisons.

Memory    head_bytes, one read of the socket (256 KiB in uvloop) and ahead requests (4 KiB each) for each connection.
Here      because service, exporter and triage, which all have such ports, share no other package; uvicorn is theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from typing import Final

__all__ = ["BoundedHead"]

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 24\r\nconnection: close\r\n\r\nrequest head is too big\n"
)


class _TooManyAheadError(Exception):
    """A client asks on and on without waiting for answers."""


class BoundedHead(asyncio.Protocol):
    """What to put in front of uvicorn's HttpToolsProtocol, as the first of two base classes.

    Attributes:
        head_bytes: Most bytes of request line and headers together; nginx allows 32 KiB, Node.js 16 KiB.
        head_seconds: Most time from a connection, or from the first byte of a further request, to the end of the head.
        ahead: Most requests that wait on a connection for the answer to an earlier one (pipelining); one more ends it.
    """

    head_bytes = 65_536
    head_seconds = 10.0
    ahead = 64

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    pipeline: Sized
    _in_head = True
    _counted = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the clock for the first head."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head that is not complete yet."""
        super().data_received(data)
        # After the parser: a head that came whole is over by now, and never counted.
        if self._in_head and not self.transport.is_closing():
            self._counted += len(data)
            if self._counted > self.head_bytes:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(self.head_seconds, self._give_up)

    def on_message_begin(self) -> None:
        """Note that a head has begun; refuse it if too many requests wait already.

        Raises:
            _TooManyAheadError: The parser stops at it; uvicorn answers 400, as to what is no HTTP, and closes.
        """
        if len(self.pipeline) >= self.ahead:
            raise _TooManyAheadError
        self._in_head = True
        self._counted = 0
        super().on_message_begin()  # type: ignore[misc]  # the second base class has it

    def on_headers_complete(self) -> None:
        """Note that the head is complete."""
        self._in_head = False
        self._stop_clock()
        super().on_headers_complete()  # type: ignore[misc]  # as above

    def _stop_clock(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self._in_head and not self.transport.is_closing():
            self.transport.close()
