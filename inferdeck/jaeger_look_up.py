"""Jaeger's part of a look-up: asks it within bounds, and lays its requests beside those of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from exporters.answer import MOST_ERRORS
from inferdeck.jaeger_api import JaegerApi, JaegerError
from inferdeck.jaeger_views import merged, views_of

if TYPE_CHECKING:
    from exporters.trace_view import TraceView
    from inferdeck.look_up import Query

__all__ = ["ask_jaeger"]

# Without --since: longer than a Jaeger in memory holds anything, and what badger keeps by default is 3 days.
BACK_SECONDS: Final = 7 * 86_400.0
# Clocks of two machines differ; what is asked for may have ended just now.
AHEAD_SECONDS: Final = 60.0


def ask_jaeger(
    url: str, query: Query, rows: list[TraceView], clock: Callable[[], float] = time.time
) -> tuple[list[TraceView], dict[str, Any]]:
    """Return the requests of rows and Jaeger together, and how Jaeger answered.

    Args:
        url: Where Jaeger is.
        query: What is looked for.
        rows: What the rows hold.
        clock: Wall clock, in seconds.

    Returns:
        The requests, in the order of the rows' own look-up; `{"url", "took_s", "found", "complete", "error"}`,
        *error* empty when it answered, *complete* false when it has more than could be looked through.
    """
    began = time.monotonic()
    found: list[TraceView] = []
    error, complete = "", True
    try:
        found, complete = _asked(JaegerApi(url), query, rows, clock())
    except JaegerError as failed:
        error = str(failed)
    about = {
        "url": url,
        "took_s": round(time.monotonic() - began, 6),
        "found": len(found),
        "complete": complete and not error,
        "error": error,
    }
    return (_ordered(query, merged(rows, found)) if found else rows), about


def _asked(api: JaegerApi, query: Query, rows: list[TraceView], now: float) -> tuple[list[TraceView], bool]:
    """Return what Jaeger has of a question, and whether that is all."""
    if query.trace is not None:
        return views_of(api.trace(query.trace.lower())), True
    if query.session is not None:
        back = BACK_SECONDS if query.within_s is None else query.within_s
        return views_of(api.session(query.session, now - back, now + AHEAD_SECONDS), query.session), True
    since = now - query.since_s
    # Jaeger chooses by a span's start, the rows by a request's end: one that began earlier has its row, or is no more.
    if query.slow is not None:
        # The rows may know of enough slow ones: then only slower ones are of use.
        least = rows[-1].duration_s if len(rows) >= query.slow else 0.0
        traces, complete = api.slow(query.slow, least, since, now + AHEAD_SECONDS)
        return sorted(views_of(traces), key=lambda view: -view.duration_s)[: query.slow], complete
    traces, complete = api.failed(since, now + AHEAD_SECONDS)
    # A span in error below a request that went well is no failed request.
    return [view for view in views_of(traces) if view.status in ("error", "unfinished")], complete


def _ordered(query: Query, views: list[TraceView]) -> list[TraceView]:
    """Return the views in the order that `exporters.lookup` gives them, and no more than that gives."""
    if query.slow is not None:
        return sorted(views, key=lambda view: -view.duration_s)[: query.slow]
    if query.errors:
        return sorted(views, key=lambda view: (view.outcome == "refused", -view.start_unix_ns))[:MOST_ERRORS]
    return views
