"""A start that takes long says so on the admin port: while middleware is set up, and while it holds the start up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from service.app import create_app
from service.startup import Startup

LOOK: list[Callable[[str], None]] = []


def wrap(app: Any) -> Any:
    """Look at the admin port while this is set up, and before the end of the start passes."""
    LOOK[-1]("set up")

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def held(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                LOOK[-1]("complete")
            await send(message)

        await app(scope, receive, held)

    return wrapped


def told(app: Any) -> tuple[int, str]:
    """Return status and phase of the admin port's readiness."""
    answer = httpx.get(f"http://127.0.0.1:{app.state.worker.admin.port}/healthz/ready", timeout=10)
    return answer.status_code, answer.json()["phase"]


@pytest.mark.anyio
async def test_the_admin_port_answers_while_middleware_is_set_up_and_holds_the_start_up(
    make_settings: Callable[..., Any], fake_backend: Any
) -> None:
    """Warming up in both, though the loop is blocked and later the model is there; ready when the start is over."""
    seen: list[tuple[str, tuple[int, str]]] = []

    def look(where: str) -> None:
        while where == "complete" and not app.state.worker.lifecycle.state.ready:
            time.sleep(0.005)
        seen.append((where, told(app)))

    LOOK.append(look)
    app = create_app(make_settings(middleware=(f"{__name__}:wrap",)), load=lambda _settings: fake_backend)
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    outgoing: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan", "asgi": {}, "state": {}}, incoming.get, outgoing.put))
    await incoming.put({"type": "lifespan.startup"})
    assert "lifespan.startup.complete" == (await asyncio.wait_for(outgoing.get(), 20))["type"]
    after = told(app)
    await incoming.put({"type": "lifespan.shutdown"})
    await asyncio.wait_for(task, 20)
    LOOK.clear()

    assert [("set up", (503, "starting")), ("complete", (503, "starting"))] == seen
    assert (200, "ready") == after


class Told:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def open(self) -> None:
        """Note it."""
        self.said.append("open")

    def accept(self) -> None:
        """Note it."""
        self.said.append("accept")


@pytest.mark.anyio
async def test_without_a_lifespan_middleware_is_set_up_by_the_first_request_and_once() -> None:
    """A server that sends no start-up gets the same app."""
    made, served, worker = [], [], Told()

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        served.append(scope["type"])

    def wrap(inside: Any) -> Any:
        made.append(inside)
        return inside

    startup = Startup(app, [wrap], lambda: worker)
    for _ in range(2):
        await startup({"type": "http"}, None, None)  # type: ignore[arg-type]  # the app asks for nothing

    assert ([app], ["http", "http"], []) == (made, served, worker.said)


@pytest.mark.anyio
async def test_the_first_message_reaches_the_app_as_well() -> None:
    """It is taken early and handed on, once."""
    got: list[Any] = []
    worker = Told()
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(_message: Any) -> None:
        got.append("sent")

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        got.append((await receive())["type"])
        await send({"type": "lifespan.startup.complete"})
        got.append((await receive())["type"])

    await Startup(app, [], lambda: worker)({"type": "lifespan"}, receive, send)

    assert ["lifespan.startup", "sent", "lifespan.shutdown"] == got
    assert ["open", "accept"] == worker.said
