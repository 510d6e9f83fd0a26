"""Open-loop traffic: due requests leave whether or not earlier ones were answered, and each end is counted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from inferdeck.stack.ports import free_ports
from inferdeck.traffic import DEVICES, Generator, TrafficPlan, encode_request, make_sessions, read_plan

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{"degraded": false}'


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Return one whole request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[str]:
    """Serve on a free port and yield the URL."""
    writers: list[asyncio.StreamWriter] = []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            await handler(reader, writer)
        except asyncio.IncompleteReadError:
            pass  # the client closed its kept connection
        finally:
            writer.close()

    listening = await asyncio.start_server(hold, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        for writer in writers:
            writer.close()


def plan(url: str, **changes: float) -> TrafficPlan:
    """Return a short plan."""
    return replace(TrafficPlan(url, rate=200.0, seconds=0.3, sessions=5, bodies=2), **changes)  # type: ignore[arg-type]


async def send(traffic: TrafficPlan) -> Generator:
    """Carry a plan out."""
    generator = Generator(traffic, [b'{"text":"a"}', b'{"text":"b"}'])
    generator.going.set()
    await generator.run()
    return generator


def test_answers_are_counted_by_status() -> None:
    """Each request is sent once, over kept connections, and ends in a count."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await read_request(reader))
            writer.write(ANSWER)

    async def scenario() -> Generator:
        async with server(answer) as url:
            return await send(plan(url))

    tally = asyncio.run(scenario()).tally

    assert tally.sent == len(seen) == tally.by_status["200"] > 10
    assert 0 == tally.degraded
    assert len({re.search(rb"X-Session-Id: (\S+)", request)[1] for request in seen}) <= 5  # type: ignore[index]


def test_a_slow_service_does_not_slow_the_traffic() -> None:
    """The loop is open: while nothing is answered, requests go on leaving."""
    release = asyncio.Event

    async def scenario() -> Generator:
        hold = release()

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            await hold.wait()
            writer.write(ANSWER.replace(b"false", b"true "))

        async with server(wait) as url:
            generator = Generator(plan(url), [b"{}"])
            generator.going.set()
            running = asyncio.create_task(generator.run())
            await asyncio.sleep(0.5)
            sent_unanswered = generator.tally.sent
            hold.set()
            await running
            assert sent_unanswered > 10
            return generator

    tally = asyncio.run(scenario()).tally

    assert tally.sent == tally.by_status["200"] == tally.degraded


def test_a_dead_service_is_counted_as_refused() -> None:
    """Nobody listens: every request ends as refused, and the traffic ends in time."""
    (port,) = free_ports(1)

    tally = asyncio.run(send(plan(f"http://127.0.0.1:{port}"))).tally

    assert tally.sent == tally.by_status["refused"] > 10


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9"]
)
def test_half_an_answer_is_counted_as_broken(answer: bytes) -> None:
    """A connection that ends within an answer, or an answer without a length, is no crash."""

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)

    async def scenario() -> Generator:
        async with server(cut) as url:
            return await send(plan(url, seconds=0.1))

    tally = asyncio.run(scenario()).tally

    assert tally.sent == tally.by_status["broken"] > 0


def test_stopping_ends_a_long_plan() -> None:
    """A plan of an hour ends when it is told so."""

    async def scenario() -> None:
        (port,) = free_ports(1)
        generator = Generator(plan(f"http://127.0.0.1:{port}", seconds=3600.0, rate=0.1), [b"{}"])
        generator.going.set()
        running = asyncio.create_task(generator.run())
        await asyncio.sleep(0.05)
        generator.stop()
        await asyncio.wait_for(running, 5)

    asyncio.run(scenario())


def test_a_new_rate_counts_at_once_and_zero_sends_nothing() -> None:
    """Nobody waits for the gap of an idle hour when the traffic comes back."""

    async def scenario() -> tuple[int, int, int]:
        (port,) = free_ports(1)
        generator = Generator(plan(f"http://127.0.0.1:{port}", seconds=3600.0, rate=200.0), [b"{}"])
        generator.going.set()
        running = asyncio.create_task(generator.run())
        await asyncio.sleep(0.3)
        generator.set_rate(0.0)
        await asyncio.sleep(0.1)
        before = generator.tally.sent
        await asyncio.sleep(0.3)
        idle = generator.tally.sent - before
        generator.set_rate(200.0)
        await asyncio.sleep(1.0)
        generator.stop()
        await asyncio.wait_for(running, 5)
        return before, idle, generator.tally.sent - before

    before, idle, again = asyncio.run(scenario())

    assert before > 0
    assert 0 == idle
    assert again > 0


def test_sessions_keep_row_b3s_pattern_and_differ() -> None:
    """Ids are fresh, devices and releases follow the seed."""
    first, again = make_sessions(50, 1), make_sessions(50, 1)

    assert all(re.fullmatch(r"[A-Za-z0-9_-]{16,32}", session.session_id) for session in first)
    assert 100 == len({session.session_id for session in first + again})
    assert [(s.device_type, s.client_release) for s in first] == [(s.device_type, s.client_release) for s in again]
    assert {"web", "mobile", "app"} == {session.device_type for session in first}


def test_a_request_is_whole() -> None:
    """Head and body as the contract wants them, the length in bytes."""
    (session,) = make_sessions(1, 1)
    body = '{"text":"好"}'.encode()

    head, _, sent = encode_request("h:1", body, session).partition(b"\r\n\r\n")

    assert body == sent
    assert f"Content-Length: {len(body)}".encode() in head
    assert head.startswith(b"POST /v1/sentiment HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "changes", [{"rate": 0}, {"rate": 1e9}, {"seconds": -1}, {"sessions": 0}, {"bodies": 10**9}, {"rate": float("nan")}]
)
def test_a_plan_out_of_bounds_is_refused(changes: dict[str, float]) -> None:
    """Rate, time and pools have limits."""
    with pytest.raises(ValueError, match="out of bounds"):
        read_plan({"url": "http://127.0.0.1:1", **changes})


@pytest.mark.parametrize("seed", range(5))
def test_every_seed_has_each_kind_of_device_in_its_share(seed: int) -> None:
    """Of 120 visitors five have old phones, whatever the seed: a kind that is missing could not meet its failure."""
    agents = [session.user_agent for session in make_sessions(120, seed)]

    assert [40, 35, 40, 5] == [agents.count(agent) for _, agent in DEVICES]
