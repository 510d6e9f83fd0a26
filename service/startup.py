"""The middleware of the settings, put around the app once the admin port answers; the start ends when theirs has.

A middleware may take long to be set up, and may hold the start up afterwards. Meanwhile the admin port says that the
service is warming up: late is told from dead.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Protocol

__all__ = ["Startup"]

App = Callable[..., Any]
Message = MutableMapping[str, Any]


class Starts(Protocol):
    """What is told how far the start is."""

    def open(self) -> None:
        """Answer on the admin port from now on; nothing is ready."""

    def accept(self) -> None:
        """Requests come from now on."""


class Startup:
    """ASGI middleware around the app that holds those of the settings.

    Args:
        app: The app inside.
        middleware: Called from the last to the first, each with what is inside of it.
        worker: Returns what is told how far the start is; asked when the start begins.
    """

    def __init__(self, app: App, middleware: Sequence[Callable[[App], App]], worker: Callable[[], Starts]) -> None:
        self._app = app
        self._middleware = middleware
        self._worker = worker
        self._whole: App | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: App, send: App) -> None:
        """Hand on; at the start of the process, answer on the admin port before the middleware is set up."""
        if scope["type"] != "lifespan":
            await self._ready()(scope, receive, send)
            return
        # The server's first message, taken before anything else: it is what tells the recorder that the start begins.
        waiting = [await receive()]
        self._worker().open()

        async def replay() -> Message:
            message: Message = waiting.pop() if waiting else await receive()
            return message

        async def watched(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._worker().accept()
            await send(message)

        await self._ready()(scope, replay, watched)

    def _ready(self) -> App:
        if self._whole is None:
            whole = self._app
            for wrap in reversed(self._middleware):
                whole = wrap(whole)
            self._whole = whole
        return self._whole
