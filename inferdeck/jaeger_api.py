"""Jaeger's query API for look-ups: by session, trace id, duration or error; all answers are bounded in time and size.

The internal `/api/traces` is asked, as Jaeger's own pages and Grafana do: the documented v3 API ignores a filter by
attributes before 2.19, without a word, and would hand out everybody's traces. `service` is required there, so that
each known service is asked; what comes back is checked once more by whoever reads it.
"""

from __future__ import annotations

import http.client
import json
import math
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
# Questions to find the slowest of a service by; of 200 traces each, in any order but one made to hide them.
MOST_ROUNDS: Final = 12
_CHUNK: Final = 64 << 10
# A span of so many microseconds, 30 years, is none.
MOST_US: Final = 1e15


class JaegerError(Exception):
    """Jaeger did not answer in time, or not what can be read; the text is one line."""


@dataclass
class JaegerApi:
    """One Jaeger.

    Attributes:
        url: `http://host:port`, with a path if it has one.
        deadline_seconds: For all questions together, from the first one on.
        most_bytes: What is read of all answers together.
        clock: Monotonic seconds.
    """

    url: str
    deadline_seconds: float = 3.0
    most_bytes: int = MOST_BYTES
    clock: Callable[[], float] = time.monotonic
    _until: float | None = None
    _read: int = 0

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
            for trace in self._search(service, since_unix_s, until_unix_s, tags=json.dumps({"session_id": session_id})):
                found.setdefault(str(trace.get("traceID")), trace)
        return list(found.values())

    def failed(self, since_unix_s: float, until_unix_s: float) -> tuple[list[dict[str, Any]], bool]:
        """Return traces that have a span in error, and whether those are all.

        Args:
            since_unix_s: Start of the time to look at.
            until_unix_s: Its end.

        Raises:
            JaegerError: If an answer cannot be had.
        """
        found: dict[str, dict[str, Any]] = {}
        complete = True
        for service in self.services()[:MOST_SERVICES]:
            traces = self._search(service, since_unix_s, until_unix_s, tags=json.dumps({"error": "true"}))
            complete = complete and len(traces) < MOST_TRACES
            found |= {str(trace.get("traceID")): trace for trace in traces}
        return list(found.values()), complete

    def slow(
        self, most: int, least_seconds: float, since_unix_s: float, until_unix_s: float
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return traces among which are the slowest, and whether that is sure.

        Jaeger hands out the latest and cannot sort by duration: whenever an answer is full, longer ones are asked for.

        Args:
            most: How many are wanted.
            least_seconds: Only traces with a span that took as long.
            since_unix_s: Start of the time to look at.
            until_unix_s: Its end.

        Raises:
            JaegerError: If an answer cannot be had.
        """
        found: dict[str, dict[str, Any]] = {}
        sure = True
        for service in self.services()[:MOST_SERVICES]:
            sure = self._slow_of(service, most, least_seconds, (since_unix_s, until_unix_s), found) and sure
        return list(found.values()), sure

    def _slow_of(
        self, service: str, most: int, least_s: float, times: tuple[float, float], found: dict[str, dict[str, Any]]
    ) -> bool:
        """Add the slowest traces of a service, and return whether they are all there."""
        # Of what is faster than `low` nothing is wanted; `high` is known to have an answer that is not full.
        low, high, least = least_s * 1e6, math.inf, least_s * 1e6
        for _ in range(MOST_ROUNDS):
            asked = {"minDuration": f"{math.floor(least)}us"} if least >= 1 else {}
            traces = self._search(service, times[0], times[1], **asked)
            found |= {str(trace.get("traceID")): trace for trace in traces}
            longest = sorted((_longest_us(trace) for trace in found.values()), reverse=True)
            low = max(low, longest[most - 1] if len(longest) >= most else 0.0)
            if len(traces) < MOST_TRACES:
                high = least
                if high <= low:
                    return True
                least = (low + high) / 2
            else:
                least = (max(least, low) + high) / 2 if high < math.inf else max(2 * least, low)
        return False

    def _search(self, service: str, since_unix_s: float, until_unix_s: float, **asked: str) -> list[dict[str, Any]]:
        """Return the latest traces of a service that fit."""
        times = {"start": str(int(since_unix_s * 1e6)), "end": str(int(until_unix_s * 1e6))}
        query = urlencode({"service": service, **asked, **times, "limit": str(MOST_TRACES)})
        return _traces(*self._ask(f"/api/traces?{query}"))

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
                self._read += len(chunk)
                if self._read > self.most_bytes:
                    raise JaegerError(
                        f"what Jaeger answers is longer than {self.most_bytes >> 20} MiB; ask for one trace"
                    )
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


def _longest_us(trace: dict[str, Any]) -> float:
    """Return the duration of a trace's longest span, by which minDuration chooses; 0 where it cannot be read."""
    spans = trace.get("spans")
    told = [span.get("duration") for span in spans if isinstance(span, dict)] if isinstance(spans, list) else []
    return max((one for one in told if isinstance(one, int | float) and 0 <= one < MOST_US), default=0.0)
