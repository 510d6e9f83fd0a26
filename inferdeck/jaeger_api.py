"""Jaeger's query API for look-ups by session or trace id: every answer bounded in time and size.

The internal `/api/traces` is asked, as Jaeger's own pages and Grafana do: the documented v3 API ignores a filter by
attributes before 2.19, without a word, and would hand out everybody's traces. `service` is required there, so that
each known service is asked; what comes back is checked once more by whoever reads it.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["JaegerApi", "JaegerError"]

MOST_BYTES: Final = 16 << 20
# The services of one installation; a Jaeger of a whole company is asked for the first ones alone, and that is said.
MOST_SERVICES: Final = 16
MOST_TRACES: Final = 200
_CHUNK: Final = 64 << 10


class JaegerError(Exception):
    """Jaeger did not answer in time, or not what can be read; the text is one line."""


@dataclass
class JaegerApi:
    """One Jaeger.

    Attributes:
        url: `http://host:port`, with a path if it has one.
        deadline_seconds: For all questions together, from the first one on.
        most_bytes: Longest answer that is read.
        clock: Monotonic seconds.
    """

    url: str
    deadline_seconds: float = 3.0
    most_bytes: int = MOST_BYTES
    clock: Callable[[], float] = time.monotonic
    _until: float | None = None

    def trace(self, trace_id: str) -> list[dict[str, Any]]:
        """Return a trace as a list of one, empty when Jaeger has none of that id.

        Raises:
            JaegerError: If the answer cannot be had.
        """
        status, body = self._ask(f"/api/traces/{quote(trace_id, safe='')}")
        # 404 is how it says that there is none
        return [] if status == 404 else _traces(status, body)

    def session(self, session_id: str, since_unix_s: float, until_unix_s: float) -> list[dict[str, Any]]:
        """Return the traces that have a span of a session.

        Args:
            session_id: As the service recorded it; any text.
            since_unix_s: Start of the time to look at; without one Jaeger looks back two days.
            until_unix_s: Its end.

        Raises:
            JaegerError: If an answer cannot be had.
        """
        found: dict[str, dict[str, Any]] = {}
        for service in self.services()[:MOST_SERVICES]:
            asked = {
                "service": service,
                "tags": json.dumps({"session_id": session_id}),
                "start": int(since_unix_s * 1e6),
                "end": int(until_unix_s * 1e6),
                "limit": MOST_TRACES,
            }
            for trace in _traces(*self._ask(f"/api/traces?{urlencode(asked)}")):
                found.setdefault(str(trace.get("traceID")), trace)
        return list(found.values())

    def services(self) -> list[str]:
        """Return the names of the services that Jaeger knows, its own left out.

        Raises:
            JaegerError: If the answer cannot be had.
        """
        status, body = self._ask("/api/services")
        names = _decoded(status, body).get("data") or []
        if not isinstance(names, list):
            raise JaegerError("Jaeger's list of services is none")
        return sorted(str(name) for name in names if name != "jaeger")

    def _ask(self, path: str) -> tuple[int, bytes]:
        """Return status and body; a body that goes on is given up at the bound of bytes, or of time."""
        now = self.clock()
        if self._until is None:
            self._until = now + self.deadline_seconds
        if now >= self._until:
            raise JaegerError(f"Jaeger did not answer within {self.deadline_seconds:g} s")
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise JaegerError(f"{self.url!r} is no address of a Jaeger; write http://127.0.0.1:16686")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname, parts.port, timeout=self._until - now)
        try:
            connection.request("GET", parts.path.rstrip("/") + path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = bytearray()
            while chunk := answer.read1(_CHUNK):
                body += chunk
                if len(body) > self.most_bytes:
                    raise JaegerError(f"Jaeger's answer is longer than {self.most_bytes >> 20} MiB; ask for one trace")
                if self.clock() >= self._until:
                    raise JaegerError(f"Jaeger did not answer within {self.deadline_seconds:g} s")
            return answer.status, bytes(body)
        except TimeoutError as error:
            raise JaegerError(f"Jaeger did not answer within {self.deadline_seconds:g} s") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise JaegerError(
                f"Jaeger at {parts.hostname} cannot be asked ({type(error).__name__}: {error})"
            ) from error
        finally:
            connection.close()


def _decoded(status: int, body: bytes) -> dict[str, Any]:
    if status != 200:
        raise JaegerError(f"Jaeger answered {status}")
    try:
        content = json.loads(body)
    # RecursionError: a depth that no honest answer has
    except (ValueError, RecursionError) as error:
        raise JaegerError("Jaeger answered no JSON") from error
    if not isinstance(content, dict):
        raise JaegerError("Jaeger answered something else than its API does")
    return content


def _traces(status: int, body: bytes) -> list[dict[str, Any]]:
    data = _decoded(status, body).get("data") or []
    if not isinstance(data, list):
        raise JaegerError("Jaeger answered something else than its API does")
    return [trace for trace in data if isinstance(trace, dict)]
