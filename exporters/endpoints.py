"""Asks the look-up API of several exporters at once, and merges what they answer.

One that is dead, slow or broken costs its own rows: the answer names it, and says how many answered.

Bounded   256 exporters, one deadline for all, 128 MiB of answers together.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from exporters.answer import FOUND, NOT_FOUND, OLDER
from exporters.merge import view_of, views_in_order
from exporters.trace_view import TraceView

__all__ = ["INCOMPLETE", "EndpointError", "Gathered", "ask_endpoints", "parse_endpoints"]

# Nothing found, and not everybody answered: that is no "not found".
INCOMPLETE: Final = "incomplete"
DEFAULT_PORT: Final = 9464
_MOST_ENDPOINTS: Final = 256

Resolve = Callable[[str, int], Sequence[str]]


class EndpointError(ValueError):
    """An endpoint that is none; the message says how one is written."""


@dataclass
class Gathered:
    """What several exporters answered.

    Attributes:
        traces: The requests, each once, in the order of the question.
        result: As in `exporters.answer`; incomplete when nothing was found and an exporter did not answer.
        asked, answered: Exporters; a name that was not resolved counts as one.
        failed: Exporter -> why it did not answer.
        sources: Where they looked.
        kept_since: From when on all that answered keep rows, RFC 3339; None when unknown.
        unreadable: Segments that they could not read, with the exporter.
        lookup_s: How long it took, seconds.
    """

    traces: list[TraceView] = field(default_factory=list)
    result: str = NOT_FOUND
    asked: int = 0
    answered: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    kept_since: str | None = None
    unreadable: list[dict[str, str]] = field(default_factory=list)
    lookup_s: float = 0.0

    def about(self) -> dict[str, Any]:
        """Return all but the traces as JSON values."""
        return {
            "sources": self.sources,
            "result": self.result,
            "kept_since": self.kept_since,
            "unreadable": self.unreadable,
            "endpoints": {
                "asked": self.asked,
                "answered": self.answered,
                "failed": [{"endpoint": endpoint, "reason": why} for endpoint, why in sorted(self.failed.items())],
            },
        }


def parse_endpoints(text: str) -> list[str]:
    """Return the endpoints of a list, each once.

    Args:
        text: `http://host:port`, `https://host:port` or `dns://name:port` (all addresses of the name, by HTTP), with
            commas between them.

    Raises:
        EndpointError: If one is none of these, or there are too many.
    """
    found = list(dict.fromkeys(part.strip().rstrip("/") for part in text.split(",") if part.strip()))
    for endpoint in found:
        try:
            parts = urlsplit(endpoint)
            good = parts.scheme in ("http", "https", "dns") and parts.hostname and parts.port != 0 and not parts.query
        except ValueError:
            good = False
        # A password in an address would end in the shell's history, and in our answer.
        if not good or "@" in parts.netloc:
            raise EndpointError(f"{endpoint.split('@')[-1]!r}: write http://host:{DEFAULT_PORT} or dns://name:port")
    if not 1 <= len(found) <= _MOST_ENDPOINTS:
        raise EndpointError(f"{len(found)} endpoints: name 1 to {_MOST_ENDPOINTS}, with commas between them")
    return found


def ask_endpoints(
    endpoints: Sequence[str],
    query: Mapping[str, str],
    *,
    token: str = "",
    deadline_seconds: float = 5.0,
    resolve: Resolve | None = None,
    most_bytes: int = 128 << 20,
) -> Gathered:
    """Ask all at once and merge their answers.

    Args:
        endpoints: As `parse_endpoints` returns them.
        query: The parameters of `/api/traces`: session_id, trace_id, slow, errors; since.
        token: Bearer token; sent to each of them.
        deadline_seconds: For all together: what has not answered by then has failed.
        resolve: Name and port -> addresses; the system's resolver by default.
        most_bytes: Of all answers together; who would go over it has failed.
    """
    began = time.monotonic()
    gathered = Gathered()
    deadline = began + deadline_seconds
    bases = _resolved(endpoints, gathered, deadline, resolve or _addresses)
    gathered.asked = len(bases) + len(gathered.failed)
    answers = asyncio.run(_ask_all(bases, query, token, deadline, most_bytes))
    views: list[TraceView] = []
    kept: list[str] = []
    results = set()
    for base, answer in zip(bases, answers, strict=True):
        if isinstance(answer, str):
            gathered.failed[base] = answer
            continue
        try:
            views += [view_of(form) for form in answer["traces"]]
            gathered.sources += [one for one in answer["sources"] if one not in gathered.sources]
        except (KeyError, TypeError, ValueError, AttributeError):
            gathered.failed[base] = "not the answer of an exporter"
            continue
        gathered.answered += 1
        results.add(answer.get("result"))
        kept += [answer["kept_since"]] if isinstance(answer.get("kept_since"), str) else []
        unreadable = answer.get("unreadable")
        for one in unreadable if isinstance(unreadable, list) else ():
            gathered.unreadable.append({"endpoint": base} | {str(key): str(value) for key, value in one.items()})
    gathered.traces = views_in_order(views, query)
    # RFC 3339 in UTC sorts as text.
    gathered.kept_since = max(kept, default=None)
    missing = OLDER if OLDER in results else NOT_FOUND
    gathered.result = FOUND if gathered.traces else INCOMPLETE if gathered.failed else missing
    gathered.lookup_s = round(time.monotonic() - began, 6)
    return gathered


def _resolved(endpoints: Sequence[str], gathered: Gathered, deadline: float, resolve: Resolve) -> list[str]:
    """Return the base addresses to ask; names that are not resolved have failed."""
    bases: list[str] = []
    for endpoint in endpoints:
        parts = urlsplit(endpoint)
        if parts.scheme != "dns":
            bases.append(endpoint if parts.port else f"{endpoint}:{DEFAULT_PORT}")
            continue
        port = parts.port or DEFAULT_PORT
        found = _within(deadline, partial(resolve, parts.hostname or "", port))
        if not found:
            gathered.failed[endpoint] = "the name was not resolved"
        for address in found or ():
            host = f"[{address}]" if ":" in address else address
            bases.append(f"http://{host}:{port}")
    return list(dict.fromkeys(bases))[:_MOST_ENDPOINTS]


def _within(deadline: float, call: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return what *call* returns, nothing if it fails or takes longer.

    A thread of its own: the system's resolver can hang for a minute, and an executor would be waited for at the end.
    """
    found: list[str] = []

    def run() -> None:
        try:
            found.extend(call())
        except OSError:
            return

    thread = threading.Thread(target=run, name="resolve", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    return list(found)


def _addresses(name: str, port: int) -> list[str]:
    """Return all addresses of a name."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found if _is_address(str(address[0]))))


def _is_address(text: str) -> bool:
    """Return whether it is an address that a URL can hold; a link-local one with its zone is not."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


async def _ask_all(
    bases: Sequence[str], query: Mapping[str, str], token: str, deadline: float, most_bytes: int
) -> list[dict[str, Any] | str]:
    """Return each one's answer, or why there is none."""
    room = [most_bytes]
    headers = {"authorization": f"Bearer {token}"} if token else {}
    # Session ids are personal data: not by way of a proxy that the environment names.
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=None) as client:  # noqa: S113 - see below

        async def one(base: str) -> dict[str, Any] | str:
            # One deadline over all steps: a server that sends a byte a second keeps within any timeout of single reads.
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    return await _ask(client, f"{base}/api/traces", query, room)
            except TimeoutError:
                return "no answer in time"
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                return f"cannot be reached: {type(error).__name__}"

        return await asyncio.gather(*map(one, bases))


async def _ask(client: httpx.AsyncClient, url: str, query: Mapping[str, str], room: list[int]) -> dict[str, Any] | str:
    """Return an exporter's answer, or why it is none."""
    async with client.stream("GET", url, params=dict(query)) as response:
        if response.status_code == 401:
            return "a token is needed, or another one: set INFERDECK_EXPORTER_API_TOKEN"
        if response.status_code != 200:
            return f"answered with status {response.status_code}"
        parts = []
        async for part in response.aiter_bytes():
            room[0] -= len(part)
            if room[0] < 0:
                return "answered too much"
            parts.append(part)
    try:
        answer = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        return "not the answer of an exporter"
    return answer if isinstance(answer, dict) else "not the answer of an exporter"
