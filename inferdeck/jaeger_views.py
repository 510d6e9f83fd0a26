"""Traces as Jaeger hands them out, as requests in our own shape; and both kinds together.

A damaged span is left out: what is shown is data of other programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from exporters.names import input_bucket
from exporters.row_plan import Value
from exporters.trace_view import SpanView, TraceView, rfc3339

__all__ = ["merged", "views_of"]

_HEX: Final = re.compile(r"[0-9a-f]{1,32}")
_STATUS: Final[Mapping[str, str]] = {"ok": "ok", "degraded": "degraded", "unfinished": "unfinished"}
# spans of one trace that are looked at; ours have eight, and a whole mesh's seldom a thousand
MOST_SPANS: Final = 2000
# requests of one trace; each is shown with all below it, and a request below it is one of its own as well
MOST_REQUESTS: Final = 200
# A number of microseconds since 1970, or of nanoseconds in what is shown, that a clock can have.
_MOST_US: Final = 2**53


class _Span:
    """One span of Jaeger's JSON, its fields checked."""

    def __init__(self, raw: Mapping[str, Any], processes: Mapping[str, Any]) -> None:
        """Read it.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: If it is none.
        """
        self.id, self.trace_id = _hex(raw["spanID"]).zfill(16), _hex(raw["traceID"]).zfill(32)
        self.name = str(raw["operationName"])
        self.start_us, self.duration_us = _microseconds(raw["startTime"]), _microseconds(raw["duration"])
        self.tags = _tags(raw.get("tags"))
        parents = [one for one in raw.get("references") or () if one.get("refType") == "CHILD_OF"]
        self.parent = _hex(parents[0]["spanID"]).zfill(16) if parents else ""
        process = processes.get(raw.get("processID", ""), {})
        self.service, self.process = str(process.get("serviceName", "")), _tags(process.get("tags"))


def views_of(traces: Sequence[Mapping[str, Any]], session_id: str | None = None) -> list[TraceView]:
    """Return the requests of traces, by start.

    Args:
        traces: As `JaegerApi` returns them.
        session_id: Only requests of this session; a Jaeger that ignores a filter must not show other people's.
    """
    views = []
    for trace in traces:
        spans, below = _spans(trace)
        # ours are marked by the key that only a request's own span has; in others' traces the topmost stands for it
        roots = [span for span in spans.values() if "session_id" in span.tags]
        roots = roots or [span for span in spans.values() if span.parent not in spans]
        views += [_view(root, below) for root in roots[:MOST_REQUESTS]]
    if session_id is not None:
        views = [view for view in views if view.session_id == session_id]
    return sorted(views, key=lambda view: view.start_unix_ns)


def merged(rows: Sequence[TraceView], jaeger: Sequence[TraceView]) -> list[TraceView]:
    """Return requests by start: each once, the recorder's word first, with the spans that only Jaeger has.

    Args:
        rows: From the flight recorder.
        jaeger: From Jaeger: requests whose rows are gone, and spans of other services, such as Triton's.
    """
    theirs = {(view.trace_id, view.spans[0].span_id): view for view in jaeger if view.spans}
    together = []
    for view in rows:
        other = theirs.pop((view.trace_id, view.spans[0].span_id), None) if view.spans else None
        known = {span.span_id for span in view.spans}
        more = [span for span in other.spans if span.span_id not in known] if other else []
        together.append(replace(view, spans=_by_start([*view.spans, *more])) if more else view)
    return sorted([*together, *theirs.values()], key=lambda view: view.start_unix_ns)


def _by_start(spans: list[SpanView]) -> list[SpanView]:
    return [spans[0], *sorted(spans[1:], key=lambda span: span.start_s)]


def _spans(trace: Mapping[str, Any]) -> tuple[dict[str, _Span], dict[str, list[_Span]]]:
    """Return a trace's spans by id, damaged ones left out, and by the id of the span above them; both by start."""
    processes = trace.get("processes") or {}
    found: dict[str, _Span] = {}
    listed = trace.get("spans")
    for raw in listed[:MOST_SPANS] if isinstance(listed, list) else ():
        try:
            span = _Span(raw, processes)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        found[span.id] = span
    below: dict[str, list[_Span]] = {}
    # Sorted once, for all requests of the trace.
    for span in sorted(found.values(), key=lambda one: one.start_us):
        below.setdefault(span.parent, []).append(span)
    return found, below


def _view(root: _Span, children: Mapping[str, Sequence[_Span]]) -> TraceView:
    """Return a request: its own span and all below it."""
    below, names, waiting = [], {root.id: root.name}, [root.id]
    while waiting:
        parent = waiting.pop()
        for span in children.get(parent, ()):
            # What lies below itself is damaged.
            if span.id in names:
                continue
            names[span.id] = span.name
            waiting.append(span.id)
            foreign = {"service.name": span.service} if span.service != root.service else {}
            below.append(
                SpanView(
                    name=span.name,
                    parent=names[parent],
                    start_s=(span.start_us - root.start_us) / 1e6,
                    duration_s=span.duration_us / 1e6,
                    attributes={**span.tags, **foreign},
                    span_id=span.id,
                )
            )
    below.sort(key=lambda span: span.start_s)
    tags, place = root.tags, root.process
    outcome = str(tags.get("outcome", "error" if tags.get("error") else "ok"))
    ended = max(below, key=lambda span: span.start_s + span.duration_s, default=None)
    return TraceView(
        trace_id=root.trace_id,
        session_id=str(tags.get("session_id", tags.get("session.id", ""))),
        started=rfc3339(root.start_us * 1000),
        duration_s=root.duration_us / 1e6,
        status=_STATUS.get(outcome, "error"),
        last_stage=str(tags.get("last_stage", ended.name if ended else "")),
        spans=[SpanView(root.name, "", 0.0, root.duration_us / 1e6, tags, root.id), *below],
        outcome="never_ended" if outcome == "unfinished" else outcome,
        route=str(tags.get("http.route", "")),
        http_status=_number(tags.get("http.response.status_code"), 0),
        input_bucket=input_bucket(_number(tags.get("input_length"), -1)),
        start_unix_ns=root.start_us * 1000,
        service=root.service,
        ring=str(place.get("service.instance.id", "")),
        worker=_number(place.get("inferdeck.worker"), 0),
        pid=_number(place.get("process.pid"), 0),
    )


def _tags(raw: Any) -> dict[str, Value]:
    """Return tags as attributes; what is no plain value is left out."""
    tags: dict[str, Value] = {}
    for one in raw if isinstance(raw, list) else ():
        key, value = (one.get("key"), one.get("value")) if isinstance(one, dict) else (None, None)
        if isinstance(key, str) and isinstance(value, str | bool | int | float):
            tags[key] = value
    return tags


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _microseconds(value: Any) -> int:
    """Return a time of a span.

    Raises:
        ValueError: If it is none, such as infinity, which Python's JSON knows.
    """
    if not isinstance(value, int | float) or not 0 <= value < _MOST_US:
        raise ValueError("no time")
    return int(value)


def _hex(value: Any) -> str:
    text = str(value).lower()
    if not _HEX.fullmatch(text):
        raise ValueError(f"no id: {text[:40]!r}")
    return text
