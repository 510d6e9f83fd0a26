"""How long a request is waited for: to its deadline, and no longer than its client is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from service.body_limit import Disconnected
from service.scheduler.ticket import DeadlineExceeded, Ticket

__all__ = ["WATCH_AFTER_SECONDS", "Patience", "Receive"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

WATCH_AFTER_SECONDS: Final = 0.02
"""From then on it is looked whether the client is still there: most requests are answered before, and cost nothing."""

_MESSAGES: Final = 16
"""A server that hands out more after the body than this is no longer listened to, so that nothing spins here."""

_log = logging.getLogger("service.scheduler")


class Patience:
    """Ends the wait at the deadline, or when the client has left.

    Args:
        ticket: The request.
        receive: The ASGI callable, None if nobody can leave.
        deadline_seconds: When the wait ends.
    """

    __slots__ = ("_deadline_seconds", "_receive", "_ticket", "_timer", "_watch")

    def __init__(self, ticket: Ticket, receive: Receive | None, deadline_seconds: float) -> None:
        self._ticket = ticket
        self._receive = receive
        self._deadline_seconds = deadline_seconds
        self._watch: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        if receive is None or deadline_seconds <= WATCH_AFTER_SECONDS:
            self._timer = loop.call_later(deadline_seconds, self._expire)
        else:
            self._timer = loop.call_later(WATCH_AFTER_SECONDS, self._look)

    def end(self) -> None:
        """Stop the clock, and stop listening before an answer is sent."""
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._deadline_seconds - WATCH_AFTER_SECONDS, self._expire)
        self._watch = loop.create_task(self._listen())

    async def _listen(self) -> None:
        if self._receive is None:
            return
        try:
            for _ in range(_MESSAGES):
                if (await self._receive())["type"] == "http.disconnect":
                    break
            else:
                return
        except Exception as error:  # noqa: BLE001 - a connection that cannot be listened to is one that broke
            _log.debug("listening for the client failed: %s", type(error).__name__)
        self._ticket.settle(Disconnected())

    def _expire(self) -> None:
        self._ticket.settle(DeadlineExceeded())
