"""A new release of a client sends product ids in lower case; a scanner's wrong paths are the healthy twin."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

SLUG = "contract_violations"
# beside 20 requests a second of others: one client in eight has the new release
PERIOD_SECONDS = 1 / 3
RELEASE = "4.3.0"
PATHS = ("/wp-login.php", "/.env", "/admin", "/v1/models", "/v2/sentiment", "/phpmyadmin")


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send requests of the new release until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: violate(stack.service_url, number), PERIOD_SECONDS):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Ask for paths that are not there, three times as often.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: scan(stack.service_url, number), PERIOD_SECONDS / 3):
        yield


def violate(url: str, number: int) -> int:
    """Send one request of the new release and return its status."""
    body = {"text": "Very good room, and the staff is friendly.", "product_id": f"ht{number % 10**8:08d}"}
    headers = {"content-type": "application/json", "x-client-release": RELEASE, "x-device-type": "app"}
    headers["user-agent"] = "ReviewApp/4.3 (Android 14)"
    return ask(url, "POST", "/v1/sentiment", headers, json.dumps(body))


def scan(url: str, number: int) -> int:
    """Ask for one path that is not there and return the status."""
    return ask(url, "GET", PATHS[number % len(PATHS)], {})


def ask(url: str, method: str, path: str, headers: dict[str, str], body: str | None = None) -> int:
    """Send one request on a connection of its own and return its status."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=5)
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def repeating(action: Any, period_seconds: float) -> Iterator[None]:
    """Run an action again and again in a thread until left; what it raises is not ours to end the drill with."""
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
        thread.join(timeout=10)
