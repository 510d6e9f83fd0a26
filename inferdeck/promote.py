"""Requests of the flight recorder, sent to an OTLP target by hand: `inferdeck trace --promote`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inferdeck.errors import CannotRun
from inferdeck.jaeger_place import span_target
from inferdeck.version import version

if TYPE_CHECKING:
    from exporters.trace_view import TraceView

__all__ = ["promote", "send_found"]

_TIMEOUT_SECONDS: Final = 5.0


def send_found(traces: Sequence[dict[str, Any]], state_dir: Path) -> dict[str, Any]:
    """Send what a look-up found to the OTLP target that is set, else to the running stack's Jaeger.

    Args:
        traces: In the shape of `trace`'s `traces`.
        state_dir: The stack's state folder.

    Returns:
        As `promote`.

    Raises:
        CannotRun: If there is no target, or it does not take them.
    """
    from exporters.merge import view_of

    target = span_target(state_dir)
    if target is None:
        raise CannotRun(
            "--promote: no Jaeger runs in this stack, and no other target is set",
            "compile one with `make jaeger` and start it with `inferdeck up`, or set INFERDECK_EXPORTER_OTLP_ENDPOINT",
        )
    views = []
    for trace in traces:
        # spans of other services, which only Jaeger had, are there already
        own = [span for span in trace["spans"] if "service.name" not in span["attributes"]]
        # one in flight will have other times when it ends
        if trace["outcome"] != "in_flight":
            views.append(view_of({**trace, "spans": own}))
    return promote(views, target, version(), os.environ.get("INFERDECK_EXPORTER_OTLP_HEADERS", ""))


def promote(views: Sequence[TraceView], target: str, release: str, headers: str = "") -> dict[str, Any]:
    """Send requests as spans, under the ids that they have: one that was sent before is not doubled by it.

    Args:
        views: Requests as the rows hold them; at most a few hundred, they go in one body.
        target: OTLP over HTTP, such as http://127.0.0.1:4318.
        release: Version of this package.
        headers: `name=value,name=value`, for a target that asks for them.

    Returns:
        `{"target", "traces", "spans", "rejected"}`.

    Raises:
        CannotRun: If the target is none, does not answer, or refuses.
    """
    from exporters.otlp import export_request, resource_bytes, view_spans
    from exporters.otlp_http import HttpTransport, parse_headers

    batches: dict[bytes, list[bytes]] = {}
    for view in views:
        resource: dict[str, str | bool | int | float] = {
            "service.name": view.service,
            "service.instance.id": view.ring,
            "process.pid": view.pid,
            "telemetry.sdk.name": "inferdeck",
            "telemetry.sdk.language": "python",
            "telemetry.sdk.version": release,
            "inferdeck.worker": view.worker,
        }
        batches.setdefault(resource_bytes(resource), []).append(view_spans(view))
    try:
        transport = HttpTransport(target, headers=parse_headers(headers), timeout_seconds=_TIMEOUT_SECONDS)
    except ValueError as error:
        raise CannotRun(f"--promote: {error}", "set INFERDECK_EXPORTER_OTLP_ENDPOINT to an OTLP/HTTP target") from error
    answer = transport.post(export_request(batches, release), compressed=False)
    transport.close()
    if not 200 <= answer.status < 300:
        said = f"answered {answer.status}" if answer.status else "did not answer"
        raise CannotRun(f"nothing was sent: {target} {said}", "see `inferdeck status`, or whether the collector runs")
    spans = sum(len(view.spans) for view in views)
    return {"target": target, "traces": len(views), "spans": spans, "rejected": answer.rejected_spans}
