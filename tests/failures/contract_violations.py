"""A new release of a client sends product ids in lower case; a scanner's wrong paths are the healthy twin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _clients import ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

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
    return int(ask(url, "POST", "/v1/sentiment", headers, json.dumps(body)))


def scan(url: str, number: int) -> int:
    """Ask for one path that is not there and return the status."""
    return int(ask(url, "GET", PATHS[number % len(PATHS)], {}))
