"""Jaeger's part of a look-up: asks it within bounds, and lays its requests beside those of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

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
        query: A session or a trace.
        rows: What the rows hold.
        clock: Wall clock, in seconds.

    Returns:
        The requests by start; `{"url", "took_s", "found", "error"}`, *error* empty when it answered.
    """
    began = time.monotonic()
    api, found, error = JaegerApi(url), [], ""
    try:
        if query.trace is not None:
            found = views_of(api.trace(query.trace.lower()))
        elif query.session is not None:
            now = clock()
            back = BACK_SECONDS if query.within_s is None else query.within_s
            found = views_of(api.session(query.session, now - back, now + AHEAD_SECONDS), query.session)
    except JaegerError as failed:
        error = str(failed)
    about = {"url": url, "took_s": round(time.monotonic() - began, 6), "found": len(found), "error": error}
    return (merged(rows, found) if found else rows), about
