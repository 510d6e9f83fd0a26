"""The exporter's pages: /metrics, /healthz and the look-up API."""

from __future__ import annotations

import hmac
import re
import time
from typing import Final

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from exporters.answer import Question, answer
from exporters.collector import registry_of
from exporters.duration import parse_duration
from exporters.exporter import Exporter
from exporters.serving import only_known_hosts

__all__ = ["BadQueryError", "make_app"]

_MOST_TRACES: Final = 1000
# A session id of 10 kB is looked up (and not found); beyond that nobody means it.
_LONGEST_QUERY: Final = 16 << 10


class BadQueryError(ValueError):
    """A query that cannot be answered; the message says what would be."""


def make_app(exporter: Exporter) -> Starlette:
    """Return the web application of a started exporter."""
    registry = registry_of(exporter.collect)
    token = exporter.settings.api_token.get_secret_value() if exporter.settings.api_token else ""

    # Plain functions: Starlette runs them in threads, so that a long look-up holds no scrape up.
    def metrics(request: Request) -> Response:
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(registry), headers={"content-type": content_type})

    def healthz(_request: Request) -> Response:
        health = exporter.health()
        return JSONResponse(health, status_code=200 if health["status"] == "ok" else 503)

    def traces(request: Request) -> Response:
        if token and not hmac.compare_digest(
            request.headers.get("authorization", "").encode(), f"Bearer {token}".encode()
        ):
            return JSONResponse({"error": "a bearer token is needed"}, 401, {"www-authenticate": "Bearer"})
        began = time.perf_counter()
        try:
            query = dict(request.query_params)
            found = answer(_question(query), exporter.ring_dir, exporter.settings.archive_dir)
        except BadQueryError as error:
            return JSONResponse({"error": str(error)}, 400)
        form = {
            "query": query,
            **found.about(),
            "lookup_s": round(time.perf_counter() - began, 6),
            # The latest: ids come in order of time, and no other question may ask for so many.
            "traces": [view.to_dict() for view in found.traces[-_MOST_TRACES:]],
        }
        # Session ids are personal data: no cache may keep them.
        return JSONResponse(form, headers={"cache-control": "no-store"})

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/healthz", healthz), Route("/api/traces", traces)],
        middleware=[only_known_hosts(exporter.settings.host)],
    )


def _question(query: dict[str, str]) -> Question:
    """Return what a query asks for.

    Raises:
        BadQueryError: If it asks for nothing, or for two things.
    """
    if sum(map(len, query.values())) > _LONGEST_QUERY:
        raise BadQueryError("the query is too long")
    asked = [name for name in ("session_id", "trace_id", "slow", "errors") if name in query]
    if len(asked) != 1:
        raise BadQueryError("ask for one of session_id=, trace_id=, slow=N, errors=1")
    since_ns = None
    if "since" in query:
        try:
            back = parse_duration(query["since"])
        except ValueError as error:
            raise BadQueryError(f"since: {error}") from error
        since_ns = max(0, time.time_ns() - int(back * 1e9))
    value = query[asked[0]]
    match asked[0]:
        case "session_id":
            return Question(session_id=value, since_ns=since_ns)
        case "trace_id":
            return Question(trace_id=value, since_ns=since_ns)
        case "slow":
            if not re.fullmatch(r"[0-9]{1,4}", value) or not 1 <= int(value) <= _MOST_TRACES:
                raise BadQueryError(f"slow: write a number from 1 to {_MOST_TRACES}")
            return Question(slow=int(value), since_ns=since_ns)
        case _:
            return Question(errors=True, since_ns=since_ns)
