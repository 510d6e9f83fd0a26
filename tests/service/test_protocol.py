"""Heads of requests that come slowly, or never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from service.admin import bind
from service.protocol import BoundedHeadProtocol

pytestmark = pytest.mark.anyio


class QuickProtocol(BoundedHeadProtocol):
    """The same with little patience."""

    head_bytes = 2000
    head_seconds = 0.3


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, whatever comes."""
    await receive()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Return the port of a server with that protocol in this loop."""
    config = uvicorn.Config(answer, http=QuickProtocol, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as bound:
        task = asyncio.create_task(server._serve([bound]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield bound.getsockname()[1]
        server.should_exit = server.force_exit = True
        await task


async def talk(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send parts, and return what comes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def test_connection_that_says_nothing_is_closed(port: int) -> None:
    """Silence holds no connection for ever."""
    assert await talk(port) == b""


async def test_head_that_drips_is_closed(port: int) -> None:
    """A byte now and then does not buy more time: the clock runs for the whole head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nX: ")
    ended = asyncio.create_task(reader.read())
    for _ in range(100):
        if ended.done():
            break
        if not writer.transport.is_closing():
            writer.write(b"y")
        await asyncio.sleep(0.05)
    writer.close()
    assert ended.done()


async def test_second_head_on_a_connection_has_its_own_clock(port: int) -> None:
    """Keep-alive works, and a half head after a whole request is closed as well."""
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    received = await talk(port, whole, whole, b"GET / HTT", pause=0.1)
    assert received.count(b"HTTP/1.1 204") == 2


async def test_head_over_its_bound_is_431(port: int) -> None:
    """Many small parts add up."""
    # The last part is the first over the bound, so that nothing unread turns the answer into a reset.
    parts = [b"X: " + b"x" * 95 + b"\r\n" for _ in range(20)]
    received = await talk(port, b"GET / HTTP/1.1\r\n", *parts, pause=0.005)
    assert received.startswith(b"HTTP/1.1 431 ")


async def test_long_body_is_no_part_of_the_head(port: int) -> None:
    """Only the head is counted."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 50000\r\n\r\n"
    assert (await talk(port, head, b"x" * 50_000)).startswith(b"HTTP/1.1 204")
