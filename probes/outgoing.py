"""The context of a request for whoever is asked next: W3C headers, and the headers of a Kafka message.

Source    W3C Trace Context level 1 (traceparent, tracestate), W3C Baggage; requirements row A4: the session goes along.
Absent    without a request there is nothing to hand on, and the result is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from probes.incoming import SESSION_KEY, baggage_session, parse_traceparent, valid_session
from probes.plan import FIXED_INDEX
from probes.record import Record
from probes.span_ids import stage_salt, stage_span_id

__all__ = ["Context", "from_headers", "kafka_headers", "trace_headers"]

_SPAN_ID: Final = FIXED_INDEX["span_id"]
_TRACESTATE = re.compile(r"[\x20-\x7e]{1,512}")


class Context(NamedTuple):
    """What headers say: trace id and parent span id (0: none), whether upstream samples, and the session ("": none)."""

    trace_id: int = 0
    parent_span_id: int = 0
    sampled: bool = False
    session: str = ""


def trace_headers(record: Record | None, stage: str = "", tracestate: str = "") -> dict[str, str]:
    """Return the headers that make another process' spans children of the request, and carry its session.

    Args:
        record: The request's row; None for no request.
        stage: The stage in which the other process is asked; "" for the request itself.
        tracestate: As it came from upstream, to be handed on unchanged; anything that is none is left out.
    """
    if record is None:
        return {}
    span = record.row[_SPAN_ID]
    span = stage_span_id(span, stage_salt(stage)) if stage else span
    # 01: recorded. Whether the exporter keeps the spans is decided when the request has ended.
    headers = {"traceparent": f"00-{record.trace_id}-{span:016x}-01"}
    if _TRACESTATE.fullmatch(tracestate):
        headers["tracestate"] = tracestate
    if record.session:
        # letters, digits, - and _ alone: nothing in it has to be escaped
        headers["baggage"] = f"{SESSION_KEY}={record.session}"
    return headers


def kafka_headers(record: Record | None, stage: str = "", tracestate: str = "") -> list[tuple[str, bytes]]:
    """Return the same as headers of a Kafka message, with `session_id` beside them; arguments of `trace_headers`."""
    headers = [(name, value.encode()) for name, value in trace_headers(record, stage, tracestate).items()]
    return [*headers, ("session_id", record.session.encode())] if record is not None and record.session else headers


def from_headers(headers: Iterable[tuple[str | bytes, bytes | None]]) -> Context:
    """Return what the headers of a request or of a Kafka message say; what is not valid is not there.

    A session of its own header (`x-session-id`, `session_id`) wins over the one in baggage. Never raises.

    Args:
        headers: Names, of any case, and values; a Kafka header may have none. Of one that comes twice the first counts.
    """
    found: dict[str, bytes] = {}
    for name, value in headers:
        text = name.decode("latin-1") if isinstance(name, bytes) else name
        if value is not None:
            found.setdefault(text.lower(), value)
    upstream = parse_traceparent(found.get("traceparent", b""))
    own = (found.get("x-session-id", b""), found.get("session_id", b""), baggage_session(found.get("baggage", b"")))
    session = next((one.decode() for one in own if valid_session(one)), "")
    return Context(*upstream, session) if upstream else Context(session=session)
