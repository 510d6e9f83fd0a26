"""One request as a tree of spans, for people and for JSON (the shape of results.md's `traces`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from exporters.names import INPUT_BUCKETS, OUTCOMES, input_bucket
from exporters.row_plan import RowPlan, Value, stage_span_id
from exporters.rows import OpenRequest
from probes.reader import Header

__all__ = ["OUTSIDE_STAGES", "SpanView", "TraceView", "rfc3339", "view_open", "view_row"]

# The time of a request that no stage explains.
OUTSIDE_STAGES: Final = "(outside stages)"

# A refused request and one whose caller left did not get what they asked for; `outcome` says which it was.
_STATUS: Final[Mapping[str, str]] = {
    "ok": "ok",
    "degraded": "degraded",
    "refused": "error",
    "error": "error",
    "disconnected": "error",
}


@dataclass(frozen=True)
class SpanView:
    """One span.

    Attributes:
        name: The stage, or method and route for the root.
        parent: Name of the span above; "" for the root.
        start_s: Start after the request's start, seconds.
        duration_s: Seconds.
        attributes: What it carries, as the exported span does.
        span_id: 16 hex digits, the id under which it is exported.
    """

    name: str
    parent: str
    start_s: float
    duration_s: float
    attributes: Mapping[str, Value] = field(default_factory=dict)
    span_id: str = ""


@dataclass
class TraceView:
    """One request.

    Attributes:
        trace_id: 32 hex digits.
        session_id: As it came, or generated.
        started: RFC 3339, UTC.
        duration_s: Seconds; of an unfinished request so far, or until now when its worker is dead.
        status: ok, error, degraded or unfinished.
        last_stage: The stage that ended last, or that an unfinished request had reached.
        slow_stage: The stage with the most time of its own; judging beyond that is runbooks' work.
        why, cause, usual: Left empty here: filled by runbooks. A sentence; the slug of the failure that it speaks of,
            if any; whether the request took no longer than others of its kind.
        spans: Root first, then stages by start.
        outcome: ok, refused, error, degraded, disconnected, or in_flight, never_ended.
        route, http_status, input_bucket, start_unix_ns, service, ring, worker, pid: Where and what it was.
    """

    trace_id: str
    session_id: str
    started: str
    duration_s: float
    status: str
    last_stage: str
    slow_stage: str = ""
    why: str = ""
    cause: str = ""
    usual: bool = False
    spans: list[SpanView] = field(default_factory=list)
    outcome: str = ""
    route: str = ""
    http_status: int = 0
    input_bucket: str = INPUT_BUCKETS[-1]
    start_unix_ns: int = 0
    service: str = ""
    ring: str = ""
    worker: int = 0
    pid: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; infinite numbers, which JSON does not have, become text."""
        form = asdict(self)
        for span in form["spans"]:
            for key, value in span["attributes"].items():
                if isinstance(value, float) and not math.isfinite(value):
                    span["attributes"][key] = str(value)
        return form


def view_row(plan: RowPlan, row: Sequence[Any], strings: Sequence[str], header: Header) -> TraceView:
    """Return a committed row as a trace.

    Args:
        plan: The plan of the row's dtype.
        row: The row as a tuple (`rows.tolist()`).
        strings: The ring file's string table.
        header: The ring file's header.
    """
    place = plan.place
    attributes = dict(plan.root_attributes(row, strings))
    session = row[place["session"]].decode("ascii", "replace")
    route = str(attributes.get("http.route", ""))
    root = SpanView(
        name=f"{attributes.get('http.request.method', 'HTTP')} {route}".strip(),
        parent="",
        start_s=0.0,
        duration_s=row[place["duration_ns"]] / 1e9,
        attributes={**attributes, "session.id": session, "session_id": session},
        span_id=f"{row[place['span_id']]:016x}",
    )
    stages = []
    for stage in plan.stages:
        if plan.ran(stage, row):
            above = plan.parent_that_ran(stage, row)
            stages.append(
                SpanView(
                    name=stage.name,
                    parent=root.name if above < 0 else plan.stages[above].name,
                    start_s=row[stage.start] / 1e9,
                    duration_s=row[stage.duration] / 1e9,
                    attributes={**dict(plan.stage_attributes(stage, row, strings)), "session.id": session},
                    span_id=f"{stage_span_id(row[place['span_id']], stage):016x}",
                )
            )
    # By start, as they happened; columns are in the order in which stages were declared.
    stages.sort(key=lambda span: span.start_s)
    outcome = row[place["outcome"]]
    outcome_name = OUTCOMES[outcome] if outcome < len(OUTCOMES) else "error"
    return TraceView(
        trace_id=f"{row[place['trace_hi']]:016x}{row[place['trace_lo']]:016x}",
        session_id=session,
        started=rfc3339(row[place["start_unix_ns"]]),
        duration_s=root.duration_s,
        status=_STATUS[outcome_name],
        last_stage=max(stages, key=lambda span: span.start_s + span.duration_s).name if stages else "",
        slow_stage=_slow_stage(root, stages),
        spans=[root, *stages],
        outcome=outcome_name,
        route=route,
        http_status=row[place["http_status"]],
        input_bucket=input_bucket(row[place["input_length"]]),
        start_unix_ns=row[place["start_unix_ns"]],
        service=header.service,
        ring=header.ring_id,
        worker=header.worker,
        pid=header.pid,
    )


def view_open(request: OpenRequest, service: str, now_unix_ns: int) -> TraceView:
    """Return a request that has not ended as a trace; its last stage is known, its stages' times are not.

    Args:
        request: The request.
        service: Name of its service.
        now_unix_ns: Until when it is shown to last.
    """
    lasted = max(0, now_unix_ns - request.start_unix_ns) / 1e9
    attributes: dict[str, Value] = {
        "http.request.method": request.method,
        "client_release": request.client_release,
        "device_type": request.device_type,
        "user_agent.name": request.agent_family,
        "last_stage": request.stage,
        "session.id": request.session,
        "session_id": request.session,
    }
    root = SpanView(
        name=request.method or "HTTP",
        parent="",
        start_s=0.0,
        duration_s=lasted,
        attributes={key: value for key, value in attributes.items() if value != ""},
        span_id=request.span_id,
    )
    return TraceView(
        trace_id=request.trace_id,
        session_id=request.session,
        started=rfc3339(request.start_unix_ns),
        duration_s=lasted,
        status="unfinished",
        last_stage=request.stage,
        slow_stage=request.stage or OUTSIDE_STAGES,
        spans=[root],
        outcome="in_flight" if request.alive else "never_ended",
        start_unix_ns=request.start_unix_ns,
        service=service,
        ring=request.ring,
        worker=request.worker,
        pid=request.pid,
    )


def _slow_stage(root: SpanView, stages: Sequence[SpanView]) -> str:
    """Return the span with the most time of its own: its duration without what its children cover."""
    own = {OUTSIDE_STAGES: root.duration_s - _covered([s for s in stages if s.parent == root.name])}
    for stage in stages:
        own[stage.name] = stage.duration_s - _covered([s for s in stages if s.parent == stage.name])
    return max(own, key=lambda name: own[name]) if stages else OUTSIDE_STAGES


def _covered(spans: Sequence[SpanView]) -> float:
    """Return the seconds that at least one of *spans* covers: stages may run at the same time."""
    total, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start_s):
        end = span.start_s + span.duration_s
        total += max(0.0, end - max(span.start_s, reached))
        reached = max(reached, end)
    return total


def rfc3339(unix_ns: int) -> str:
    """Return the moment in UTC, to the microsecond; the last one that can be written for one that cannot."""
    try:
        return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return "9999-12-31T23:59:59.999999Z"
