"""Clients beside the drill's traffic: one request, and an action that is repeated until the cause ends."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

JSON = {"content-type": "application/json"}


def ask(
    url: str,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: str | bytes | None = None,
    *,
    timeout: float = 5.0,
) -> int:
    """Send one request on a connection of its own and return its status.

    Args:
        url: Base URL of the service.
        method: HTTP method.
        path: Path of the request.
        headers: Its headers.
        body: Its body.
        timeout: Most seconds for each step of it.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=timeout)
    try:
        connection.request(method, path, body, dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def repeating(action: Callable[[int], Any], period_seconds: float) -> Iterator[None]:
    """Run an action again and again in a thread until left; what it raises is not ours to end the drill with.

    Args:
        action: Gets how often it was run before.
        period_seconds: Pause between two runs.
    """
    over = threading.Event()

    def run() -> None:
        for number in count():
            with suppress(Exception):
                action(number)
            if over.wait(period_seconds):
                return

    thread = threading.Thread(target=run, name="clients", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=20)
