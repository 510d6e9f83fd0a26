"""A running service without sockets, models that do as they are told, and the contract as a judge of answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml
from fastapi import FastAPI
from jsonschema import Draft202012Validator
from numpy.typing import NDArray
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from service.app import create_app
from service.backend import Backend, BackendError, Encoded
from service.settings import Settings, load_settings

CONTRACT_PATH = Path(__file__).resolve().parents[2] / "service" / "openapi.yaml"
GOOD = {"text": "房间很干净，服务员态度也好。 Very good!", "product_id": "HT20240117"}


class FakeBackend:
    """Tokens are code points, logits are fixed; a closed gate holds every forward."""

    labels: Sequence[str] = ("negative", "neutral", "positive")
    temperature = 1.0
    version = "fake-1"
    device_type = "cpu"

    def __init__(self, logits: Sequence[float] = (0.0, 1.0, 3.0), error: Exception | None = None) -> None:
        self.logits = logits
        self.error = error
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.texts: list[str] = []
        self.forwards = 0

    def encode(self, text: str) -> Encoded:
        """Return one token for each character."""
        self.texts.append(text)
        return Encoded([ord(c) % 1000 for c in text], len(text), False)

    def forward(self, ids: NDArray[np.int64], _mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the fixed logits once the gate is open."""
        self.forwards += 1
        self.entered.set()
        if not self.gate.wait(30):
            raise BackendError("the test never opened the gate")
        if self.error is not None and self.forwards > 1:  # the first is the warm-up
            raise self.error
        return np.tile(np.array(self.logits, dtype=np.float32), (len(ids), 1))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run coroutine tests under asyncio alone."""
    return "asyncio"


@pytest.fixture
def good() -> dict[str, str]:
    """Return a request that fits the contract."""
    return dict(GOOD)


def settings_maker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Return a maker of settings that stay inside a folder and on free ports."""
    monkeypatch.setenv("INFERDECK_RING_DIR", str(folder / "rings"))
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(folder / "state"))

    def make(**overrides: Any) -> Settings:
        defaults: dict[str, Any] = {
            "port": 0,
            "admin_port": 0,
            "model_dir": folder / "model",
            "model_retry_seconds": 0.05,
        }
        return load_settings(**(defaults | {"memory_reserve_bytes": 0} | overrides))

    return make


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread brings about."""
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    pytest.fail("waited 20 seconds for nothing")


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Return the coroutine that waits for a condition."""
    return wait_until


Serve = Callable[..., AbstractAsyncContextManager[tuple[httpx.AsyncClient, FastAPI]]]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start and stop an app as a server does, through all of its middleware."""
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    outgoing: asyncio.Queue[Any] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    task = asyncio.create_task(app(scope, incoming.get, outgoing.put))
    await incoming.put({"type": "lifespan.startup"})
    assert (await asyncio.wait_for(outgoing.get(), 20))["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await incoming.put({"type": "lifespan.shutdown"})
        assert (await asyncio.wait_for(outgoing.get(), 20))["type"] == "lifespan.shutdown.complete"
        await task


def server(make: Callable[..., Settings]) -> Serve:
    """Return a context manager that runs the app with a backend and yields a client and the app."""

    @asynccontextmanager
    async def run(
        backend: Backend | None = None,
        *,
        ready: bool = True,
        load: Callable[[Settings], Backend] | None = None,
        **told: Any,
    ) -> AsyncIterator[tuple[httpx.AsyncClient, FastAPI]]:
        chosen: Backend = backend or FakeBackend()
        app = create_app(make(**told), load or (lambda _settings: chosen))
        transport = httpx.ASGITransport(app)
        async with (
            lifespan(app),
            httpx.AsyncClient(transport=transport, base_url="http://t") as client,
        ):
            if ready:
                await wait_until(lambda: app.state.worker.lifecycle.backend is not None)
            yield client, app

    return run


@pytest.fixture
def make_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Return a maker of settings of this test."""
    return settings_maker(tmp_path, monkeypatch)


@pytest.fixture
def serve(make_settings: Callable[..., Settings]) -> Serve:
    """Return what runs an app of this test."""
    return server(make_settings)


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Return the client of one app that a module's tests share, since none of them can change it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.mktemp("service")
        async with server(settings_maker(folder, monkeypatch))() as (shared, _app):
            yield shared


@pytest.fixture(scope="session")
def contract() -> dict[str, Any]:
    """Return openapi.yaml as data."""
    document: dict[str, Any] = yaml.safe_load(CONTRACT_PATH.read_text(encoding="utf-8"))
    return document


class Judge:
    """Holds answers against the contract."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._registry: Registry[Any] = Registry().with_resource("urn:contract", DRAFT202012.create_resource(document))

    def validate(self, schema: str, value: Any) -> None:
        """Hold a value against a named schema of the contract."""
        reference = {"$ref": f"urn:contract#/components/schemas/{schema}"}
        Draft202012Validator(reference, registry=self._registry).validate(value)

    def answer(self, response: httpx.Response, path: str = "/v1/sentiment", method: str = "post") -> dict[str, Any]:
        """Return the answer's document after holding status, headers, type and body against the contract."""
        told = self.document["paths"][path][method]["responses"][str(response.status_code)]
        for name, header in told.get("headers", {}).items():
            if header.get("required"):
                assert name in response.headers
            if name in response.headers and "enum" in header["schema"]:
                assert response.headers[name] in header["schema"]["enum"]
        ((kind, body),) = told["content"].items()
        assert response.headers["content-type"] == kind
        document: dict[str, Any] = json.loads(response.content)
        self.validate(body["schema"]["$ref"].rpartition("/")[2], document)
        return document


@pytest.fixture
def judge(contract: dict[str, Any]) -> Judge:
    """Return the judge of answers."""
    return Judge(contract)


@pytest.fixture
def fake_backend() -> Iterator[FakeBackend]:
    """Return a backend with an open gate, which is open again at the end."""
    backend = FakeBackend()
    yield backend
    backend.gate.set()


@pytest.fixture
def make_backend() -> type[FakeBackend]:
    """Return the maker of backends that do as they are told."""
    return FakeBackend
