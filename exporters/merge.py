"""Requests out of several exporters' answers: each once, in the order of the question."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from exporters.answer import MOST_ERRORS
from exporters.trace_view import SpanView, TraceView

__all__ = ["view_of", "views_in_order"]


def _finite(value: Any) -> float:
    """Return a number that can be compared and drawn; JSON as Python reads it has infinite ones and NaN as well."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no time")
    return number


def _whole(value: Any) -> int:
    """Return a whole number; nanoseconds since 1970 do not pass through a float."""
    return value if isinstance(value, int) else int(_finite(value))


_TYPES: Final[dict[str, Any]] = {
    "duration_s": _finite,
    "http_status": _whole,
    "start_unix_ns": _whole,
    "worker": _whole,
    "pid": _whole,
    "usual": lambda value: value is True,
}
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_NAMES: Final = tuple(one.name for one in fields(TraceView) if one.name != "spans")


def view_of(form: Mapping[str, Any]) -> TraceView:
    """Return the request that a JSON form (`TraceView.to_dict`) describes; keys that are not known are left out.

    Args:
        form: As it came from another process: nothing in it is trusted.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: If it is none.
    """
    spans = [
        SpanView(
            name=str(span["name"]),
            parent=str(span["parent"]),
            start_s=_finite(span["start_s"]),
            duration_s=_finite(span["duration_s"]),
            attributes={
                str(key): value for key, value in span["attributes"].items() if isinstance(value, str | int | float)
            },
            span_id=str(span.get("span_id", "")),
        )
        for span in form["spans"]
    ]
    if not _TRACE_ID.fullmatch(form["trace_id"]):
        raise ValueError("no trace id")
    known = {name: _TYPES.get(name, str)(form[name]) for name in _NAMES if name in form}
    return TraceView(**known, spans=spans)


def views_in_order(views: Iterable[TraceView], query: Mapping[str, str]) -> list[TraceView]:
    """Return each request once, as `exporters.lookup` orders them.

    Args:
        views: From all exporters; two that read one folder both have its rows.
        query: The parameters of the question: slow=N, errors, or an id.
    """
    found: dict[tuple[str, str, str], TraceView] = {}
    for view in views:
        key = (view.trace_id, view.ring, view.spans[0].span_id if view.spans else "")
        # One that had not ended when the first was asked may have when the second was.
        if key not in found or found[key].status == "unfinished":
            found[key] = view
    if "slow" in query:
        return sorted(found.values(), key=lambda view: -view.duration_s)[: int(query["slow"])]
    if "errors" in query:
        return sorted(found.values(), key=lambda view: (view.outcome == "refused", -view.start_unix_ns))[:MOST_ERRORS]
    return sorted(found.values(), key=lambda view: view.start_unix_ns)
