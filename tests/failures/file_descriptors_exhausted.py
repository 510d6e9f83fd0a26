"""A worker may have few file descriptors, and clients hold connections until none is left."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from _clients import ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "file_descriptors_exhausted"
# so many more than the worker has open when it begins
ROOM = 64
# more than there is room for; those that are refused are tried again
HELD = 2 * ROOM
AGAIN_SECONDS = 0.5


@contextmanager
def limited(pids: list[int], room: int = ROOM) -> Iterator[None]:
    """Let processes have only so many descriptors more than they have now.

    Args:
        pids: The processes.
        room: How many more.
    """
    before = {}
    for pid in pids:
        before[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        # the limit is one of numbers: the highest that is open counts, not how many are
        highest = max(int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1 + room, before[pid][1]))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


class Holder:
    """Connections that are opened and held, without a request.

    Args:
        url: Base URL of the service.
        most: How many are held.
    """

    def __init__(self, url: str, most: int = HELD) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._most = most
        self.held: list[socket.socket] = []

    def hold(self, _: int) -> None:
        """Open what lacks; connections that the service has closed are let go of."""
        for one in list(self.held):
            with suppress(BlockingIOError):
                if _ended(one):
                    self.held.remove(one)
                    one.close()
        while len(self.held) < self._most:
            one = socket.create_connection(self._address, timeout=1.0)
            one.setblocking(False)
            self.held.append(one)

    def let_go(self) -> None:
        """Close all."""
        for one in self.held:
            one.close()
        self.held.clear()


def _ended(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionError:
        return True


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Hold connections to a service that may have few.

    Args:
        stack: The drill's handle on the stack.
    """
    holder = Holder(stack.service_url)
    with limited(stack.worker_pids):
        try:
            with repeating(holder.hold, AGAIN_SECONDS):
                yield
        finally:
            holder.let_go()


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Ask the same service over a new connection each time, many a second, each closed after its answer.

    Args:
        stack: The drill's handle on the stack.
    """
    headers = {"connection": "close"}
    with (
        limited(stack.worker_pids),
        repeating(lambda _: ask(stack.service_url, "GET", "/healthz", headers), 0.02),
        repeating(lambda _: ask(stack.service_url, "GET", "/healthz", headers), 0.02),
    ):
        yield
