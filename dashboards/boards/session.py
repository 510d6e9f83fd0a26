"""Session look-up: from a session id to its requests in Jaeger, and from a trace id to its waterfall."""

from __future__ import annotations

from typing import Final

from dashboards.boards.variables import SESSION, TRACE, TRACED_SERVICE
from dashboards.spec import Board, Panel, Query, Section

__all__ = ["BOARD"]

_HELP = """Only requests worth keeping are in Jaeger: failed, slow for their length, of low quality or confidence,
and a small random share.

**Every** request, also of a worker that was killed, is found on the machine itself:

```
inferdeck trace ${session_id}
```

A session id has 16 to 32 letters, digits, `-` or `_`, and comes from the caller's header `X-Session-Id`."""

_FIND: Final = (
    Panel(
        key="requests",
        id=1,
        title="Requests of the session",
        kind="table",
        unit="none",
        description="Traces in Jaeger whose spans carry this session id. A trace id opens below, and in Jaeger's view.",
        no_data="No trace with this session id was kept. `inferdeck trace` finds every request.",
        queries=(Query("", search={"queryType": "search", "tags": 'session_id="${session_id}"', "limit": 50}),),
        width=16,
        source="jaeger",
    ),
    Panel(
        key="help",
        id=2,
        title="Not found?",
        kind="text",
        unit="none",
        description="Where requests are that were not sent to Jaeger.",
        no_data="None.",
        queries=(),
        text=_HELP,
    ),
    Panel(
        key="waterfall",
        id=3,
        title="Waterfall",
        kind="traces",
        unit="none",
        description="The spans of the trace chosen above: each business step, with its length, tokens and wait.",
        no_data="No trace is chosen, or Jaeger no longer holds it.",
        queries=(Query("${trace_id}"),),
        width=24,
        height=16,
        source="jaeger",
    ),
)

BOARD: Final = Board(
    "session",
    "Session look-up",
    "A customer says their session was slow: its requests, and the waterfall of each.",
    (Section("One session", _FIND),),
    (TRACED_SERVICE, SESSION, TRACE),
    # Customers complain hours later.
    since="now-24h",
)
