from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from service.breaker import Breaker
from service.postprocess.app import create_app
from service.postprocess.confidence import verdict
from service.postprocess.remote import OverSocket

pytestmark = pytest.mark.anyio
LABELS = ["negative", "neutral", "positive"]
LOGITS = [-1.0, 0.25, 3.5]
PATIENT = 20.0


@asynccontextmanager
async def answering(path: Path, answer: bytes | None) -> AsyncIterator[None]:
    """Answer every connection with the same bytes; None leaves it open without a word."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_unix_server(serve, str(path))
    try:
        yield
        await ended.wait()
    finally:
        server.close()


def http(body: bytes, status: str = "200 OK") -> bytes:
    """Return an HTTP answer."""
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


async def test_socket_and_process_say_the_same(real: subprocess.Popen[bytes], socket_path: Path) -> None:
    """The same code in another process: the same label and, to the last digit, the same confidence."""
    remote = OverSocket(socket_path, PATIENT)
    found, where = await remote.judge(LOGITS, 1.3, LABELS)
    await remote.close()

    assert where == "socket"
    assert verdict(LOGITS, 1.3, LABELS) == found
    assert stat.S_IMODE(os.stat(socket_path).st_mode) == 0o600  # noqa: PTH116 - no waiting, in a test


async def test_killed_app_costs_the_place_and_not_the_answer(real: subprocess.Popen[bytes], socket_path: Path) -> None:
    """After SIGKILL this process does the work; a new app takes over the socket that the dead one left."""
    remote = OverSocket(socket_path, PATIENT, breaker=Breaker(pause_seconds=0.01))
    assert (await remote.judge(LOGITS, 1.0, LABELS))[1] == "socket"
    os.kill(real.pid, signal.SIGKILL)
    real.wait(30)

    assert (verdict(LOGITS, 1.0, LABELS), "fallback") == await remote.judge(LOGITS, 1.0, LABELS)

    again = subprocess.Popen(  # noqa: ASYNC220 - as a user starts it
        [sys.executable, "-m", "service.postprocess", str(socket_path)]
    )
    try:
        for _ in range(600):
            await asyncio.sleep(0.1)
            where = (await remote.judge(LOGITS, 1.0, LABELS))[1]
            if where == "socket":
                break
        assert where == "socket"
    finally:
        again.terminate()
        again.wait(30)
        await remote.close()
    assert not os.path.exists(socket_path)  # noqa: ASYNC240, PTH110 - no waiting, in a test


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="never"),
        pytest.param(b"", id="closed at once"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{", id="half an answer"),
        pytest.param(http(b"not json"), id="no json"),
        pytest.param(http(b"[1]"), id="another shape"),
        pytest.param(http(b'{"label": "furious", "confidence": 0.9}'), id="a label that nobody knows"),
        pytest.param(http(b'{"label": "positive", "confidence": NaN}'), id="no number"),
        pytest.param(http(b'{"label": "positive", "confidence": 1.5}'), id="no probability"),
        pytest.param(http(b"{}", "500 Oh"), id="an error"),
    ],
)
async def test_whatever_the_socket_does_there_is_a_right_answer(socket_path: Path, answer: bytes | None) -> None:
    """A peer that is slow, gone or wrong is noticed, and the request is answered from here."""
    async with answering(socket_path, answer):
        remote = OverSocket(socket_path, 0.3)
        found, where = await remote.judge(LOGITS, 1.0, LABELS)
        await remote.close()

    assert (verdict(LOGITS, 1.0, LABELS), "fallback") == (found, where)


async def test_a_socket_that_fails_is_left_alone(socket_path: Path) -> None:
    """After five failures nobody waits for it until the pause is over."""
    breaker = Breaker(pause_seconds=3600)
    remote = OverSocket(socket_path, 0.3, breaker=breaker)
    for _ in range(8):
        await remote.judge(LOGITS, 1.0, LABELS)
    await remote.close()

    assert ("open", 1) == (breaker.state, breaker.opened)


@pytest.mark.parametrize(
    "body",
    [
        {"logits": [1.0], "temperature": 1.0, "labels": ["a", "b"]},
        {"logits": [], "temperature": 1.0, "labels": []},
        {"logits": [1.0], "temperature": 0.0, "labels": ["a"]},
        {"logits": ["x"], "temperature": 1.0, "labels": ["a"]},
        {"logits": [0.0] * 1001, "temperature": 1.0, "labels": ["a"] * 1001},
        {"logits": [1.0], "temperature": 1.0, "labels": ["a"], "more": 1},
    ],
)
async def test_app_refuses_what_is_no_answer_of_a_model(body: dict[str, object]) -> None:
    """Each is 422, none a 500."""
    transport = httpx.ASGITransport(create_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        assert (await client.post("/v1/confidence", json=body)).status_code == 422
        assert (await client.get("/healthz")).json() == {"status": "ok"}


def test_place_that_is_taken_is_said(socket_path: Path) -> None:
    """A file is not written over, nor is somebody's living socket; both end in one line and status 2."""
    socket_path.write_text("mine")
    command = [sys.executable, "-m", "service.postprocess", str(socket_path)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (2, "mine") == (refused.returncode, socket_path.read_text())
    assert "is no socket" in refused.stderr

    socket_path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(socket_path))
        other.listen()
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "somebody answers" in refused.stderr
