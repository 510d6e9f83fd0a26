"""Requests of the flight recorder, sent to an OTLP target by hand: `inferdeck trace --promote`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inferdeck.errors import CannotRun
from inferdeck.jaeger_place import TARGET_VARIABLE, span_target
from inferdeck.version import version

if TYPE_CHECKING:
    from exporters.trace_view import TraceView

__all__ = ["promote", "send_found"]

_TIMEOUT_SECONDS: Final = 5.0
HTTP: Final = "http/protobuf"


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
    headers, protocol = (os.environ.get(f"INFERDECK_EXPORTER_OTLP_{name}", "") for name in ("HEADERS", "PROTOCOL"))
    # The stack's own Jaeger is asked over HTTP, whatever is set for a target of the user's.
    theirs = os.environ.get(TARGET_VARIABLE)
    return promote(views, target, version(), headers, (protocol if theirs else "") or HTTP)


def promote(
    views: Sequence[TraceView], target: str, release: str, headers: str = "", protocol: str = HTTP
) -> dict[str, Any]:
    """Send requests as spans, under the ids that they have: one that was sent before is not doubled by it.

    Args:
        views: Requests as the rows hold them; at most a few hundred, they go in one body.
        target: Such as http://127.0.0.1:4318.
        release: Version of this package.
        headers: `name=value,name=value`, for a target that asks for them.
        protocol: How it is asked: one of `exporters.otlp_target.PROTOCOLS`.

    Returns:
        `{"target", "traces", "spans", "rejected"}`.

    Raises:
        CannotRun: If the target is none, does not answer, or refuses.
    """
    from exporters.otlp import export_request, resource_bytes, view_spans
    from exporters.otlp_target import open_transport

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
        transport = open_transport(protocol, target, headers=headers, timeout_seconds=_TIMEOUT_SECONDS)
    except ValueError as error:
        raise CannotRun(f"--promote: {error}", "set INFERDECK_EXPORTER_OTLP_ENDPOINT to an OTLP target") from error
    answer = transport.post(export_request(batches, release), compressed=False)
    transport.close()
    if not 200 <= answer.status < 300:
        said = f"answered {answer.status}" if answer.status else "did not answer"
        raise CannotRun(f"nothing was sent: {target} {said}", "see `inferdeck status`, or whether the collector runs")
    spans = sum(len(view.spans) for view in views)
    return {"target": target, "traces": len(views), "spans": spans, "rejected": answer.rejected_spans}
