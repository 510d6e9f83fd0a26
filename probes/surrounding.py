"""The span around us: where OpenTelemetry's instrumentation has begun one for this request, our row hangs below it.

Source    the context of opentelemetry.trace, if something that makes spans is loaded; it is never imported here.
Cost      none without one; with one about 1 us per request. The API alone makes no spans: FastAPI loads it wherever it
          is installed.
Absent    no span, or an instrumentation inside of us: the row's parent is the caller's, as traceparent says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Final

__all__ = ["FLAG_PARENT_INSIDE", "surrounding_span"]

FLAG_PARENT_INSIDE: Final = 16  # of a row's flags: the parent span lies in this process
MOST_TRACE: Final = 2**128 - 1
MOST_SPAN: Final = 2**64 - 1
Span = tuple[int, int, bool]


def surrounding_span(modules: Mapping[str, ModuleType] = sys.modules) -> Callable[[], Span | None] | None:
    """Return what finds the current span, or None where nothing makes spans.

    Args:
        modules: The modules that the process has loaded by now.

    Returns:
        A function that returns trace id, span id and whether it is sampled, or None outside of a span.
    """
    api = modules.get("opentelemetry.trace")
    current_span = getattr(api, "get_current_span", None)
    # The SDK, or a vendor's own provider, which has no module that one could know.
    makes_spans = "opentelemetry.sdk.trace" in modules or getattr(api, "_TRACER_PROVIDER", None) is not None
    if current_span is None or not makes_spans:
        return None

    def find() -> Span | None:
        try:
            context = current_span().get_span_context()
            trace, span = context.trace_id, context.span_id
            # A tracer of its own kind may have wider ids, for which a row has no room.
            fits = context.is_valid and 0 < trace <= MOST_TRACE and 0 < span <= MOST_SPAN
            return (trace, span, bool(context.trace_flags & 1)) if fits else None
        except Exception:  # noqa: BLE001  somebody else's code: what it raises costs the parent, not the row
            return None

    return find
