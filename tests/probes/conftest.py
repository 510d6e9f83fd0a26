"""A recorder on a small ring, and a client that speaks ASGI without any server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from probes import Recorder, RecorderSettings
from probes.reader import RingFile

Message = MutableMapping[str, Any]
App = Callable[..., Awaitable[None]]


@dataclass
class Client:
    """Calls an ASGI app with messages of its own and keeps what it answers."""

    app: App
    incoming: list[Message] = field(default_factory=lambda: [{"type": "http.request", "body": b"", "more_body": False}])
    sent: list[Message] = field(default_factory=list)
    pauses_s: float = 0.0

    async def receive(self) -> Message:
        """Give the next message; after the last one the client is gone."""
        if self.pauses_s:
            await asyncio.sleep(self.pauses_s)
        return self.incoming.pop(0) if self.incoming else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Keep a message."""
        if self.pauses_s:
            await asyncio.sleep(self.pauses_s)
        self.sent.append(message)

    async def call(self, headers: Any = (), **scope: Any) -> None:
        """Make one request."""
        asgi: dict[str, Any] = {"type": "http", "method": "POST", "path": "/x", "headers": headers, **scope}
        await self.app(asgi, self.receive, self.send)

    def run(self, headers: Any = (), **scope: Any) -> None:
        """Make one request on an event loop of its own."""
        asyncio.run(self.call(headers, **scope))


@pytest.fixture
def ring_dir(tmp_path: Path) -> Path:
    """A folder for ring files that does not exist yet."""
    return tmp_path / "rings"


@pytest.fixture
def small() -> RecorderSettings:
    """Sizes that make a ring wrap within a test; no sensors."""
    return RecorderSettings(ring_rows=64, open_slots=8, sensors=False)


@pytest.fixture
def recorder(ring_dir: Path, small: RecorderSettings) -> Iterator[Recorder]:
    """A recorder with its ring open."""
    recorder = Recorder.open(ring_dir, "test", settings=small)
    yield recorder
    recorder.close()


@pytest.fixture
def ring(recorder: Recorder) -> Iterator[RingFile]:
    """The recorder's ring, opened for reading."""
    assert recorder.path is not None
    with RingFile(recorder.path) as ring:
        yield ring


@pytest.fixture
def client() -> type[Client]:
    """The class of ASGI clients."""
    return Client


@pytest.fixture
def decode() -> Callable[[RingFile], list[dict[str, Any]]]:
    """Return a function that gives a ring's rows as plain values, texts instead of string ids."""

    def rows(ring: RingFile) -> list[dict[str, Any]]:
        batch = ring.read(0, 1 << 20)
        strings, kinds = ring.strings(), ring.header.columns
        names = batch.rows.dtype.names or ()
        return [
            {name: strings[row[name]] if kinds[name] == "str" else row[name].item() for name in names}
            for row in batch.rows
        ]

    return rows
