"""A small HTTP client for local health checks and the JSON APIs of Prometheus, Alertmanager and our own parts."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Unreachable", "get", "get_json", "post_json"]

# bounds what a confused peer can make us hold: the largest honest answer is the rules API, well below
MAX_BODY_BYTES = 16 * 1024 * 1024


class Unreachable(Exception):  # noqa: N818  # names the state of the peer
    """Raised when a peer does not answer in time, or answers what cannot be read."""


def get(url: str, timeout_seconds: float = 2.0, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Fetch *url* over plain HTTP, without proxies and redirects.

    Args:
        url: http://host:port/path?query.
        timeout_seconds: Bound on connect and on each read.
        headers: Further headers.

    Returns:
        Status code and at most 16 MiB of body.

    Raises:
        Unreachable: If nobody answers in time.
    """
    return _ask("GET", url, timeout_seconds, None, {"Accept": "application/json, */*", **(headers or {})})


def post_json(
    url: str, content: Any, timeout_seconds: float = 2.0, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Send *content* as JSON.

    Args:
        url: http://host:port/path?query.
        content: JSON value.
        timeout_seconds: Bound on connect and on each read.
        headers: Further headers.

    Returns:
        Status code and at most 16 MiB of body.

    Raises:
        Unreachable: If nobody answers in time.
    """
    body = json.dumps(content).encode()
    return _ask("POST", url, timeout_seconds, body, {"Content-Type": "application/json", **(headers or {})})


def _ask(
    method: str, url: str, timeout_seconds: float, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # no urllib: it would follow proxies of the environment and redirects
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_seconds)
    try:
        connection.request(method, target, body, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_BODY_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{parts.hostname}:{parts.port} {type(error).__name__}: {error}") from error
    finally:
        connection.close()


def get_json(url: str, timeout_seconds: float = 2.0, headers: Mapping[str, str] | None = None) -> Any:
    """Fetch *url* and decode its JSON body.

    Raises:
        Unreachable: If nobody answers, the status is not 2xx, or the body is no JSON.
    """
    status, body = get(url, timeout_seconds, headers)
    if not 200 <= status < 300:
        raise Unreachable(f"{url} answered {status}")
    try:
        return json.loads(body)
    except ValueError as error:
        raise Unreachable(f"{url} answered no JSON") from error
