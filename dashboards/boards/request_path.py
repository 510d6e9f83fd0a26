"""Request path: where one request's time goes, from the first byte to the last."""

from __future__ import annotations

from typing import Final

from dashboards.boards.users import latency
from dashboards.boards.variables import BUCKET, ROUTE, SERVICE
from dashboards.expr import is_, like, mean, per_minute, pick, quantile, share, total
from dashboards.spec import Board, Panel, Query, Section

__all__ = ["BOARD"]

_NO_REQUESTS = "No requests in this time."
_BUCKET = like("input_bucket", "$input_bucket")
_QUICK = total("model_filter_seconds_bucket", is_("le", "0.02"), by="agent_family")
_SLOW = f"{total('model_filter_seconds_count', by='agent_family')} - {_QUICK}"
_DISPATCH = is_("stage", "scheduler.dispatch")
_INSIDE = like("stage", "sentiment[.]tokenizer|model[.]forward")
_QUEUE = (
    f"({total('model_stage_seconds_sum', _DISPATCH)} - {total('model_stage_seconds_sum', _INSIDE)}) "
    f"/ ({total('model_stage_seconds_count', _DISPATCH)} > 0)"
)

_WHOLE: Final = (
    latency("latency", 1, 12),
    Panel(
        key="latency-heatmap",
        id=2,
        title="All answers",
        kind="heatmap",
        unit="s",
        description="How many answers took how long. Two bands: two kinds of requests; a band that moves: all of "
        "them slower. "
        "Diamonds are requests whose trace can be opened.",
        no_data=_NO_REQUESTS,
        leads_to=("session",),
        queries=(
            Query(
                f"sum by (le) (increase({pick('model_latency_seconds_bucket', _BUCKET)}[$__rate_interval]))",
                "{{le}}",
                exemplars=True,
            ),
        ),
        width=12,
    ),
)

_STAGES: Final = (
    Panel(
        key="waterfall",
        id=3,
        title="The usual request, slowest step first",
        kind="bargauge",
        unit="s",
        description="Mean time of each step over the time shown, those of the tree of spans. One request's own tree: "
        "Session look-up, or `inferdeck trace SESSION_ID`.",
        no_data=_NO_REQUESTS,
        leads_to=("session",),
        queries=(
            Query(
                f"sort_desc({mean('model_stage_seconds', by='stage').replace('$__rate_interval', '$__range')})",
                "{{stage}}",
                instant=True,
            ),
        ),
        base="blue",
        minimum=0,
    ),
    Panel(
        key="stage-p95",
        id=4,
        title="P95 of each step",
        kind="timeseries",
        unit="s",
        description="95 of 100 requests passed the step at least this fast. scheduler.dispatch holds tokenizer and "
        "model.",
        no_data=_NO_REQUESTS,
        queries=(Query(quantile(0.95, "model_stage_seconds", by="stage"), "{{stage}}"),),
        width=16,
        minimum=0,
    ),
    Panel(
        key="queue-wait",
        id=5,
        title="Wait in the queue",
        kind="timeseries",
        unit="s",
        description="Mean time between hand-over and work: scheduler.dispatch without tokenizer and model. It grows "
        "when "
        "workers are fewer than requests, or when the event loop is held.",
        no_data=_NO_REQUESTS,
        leads_to=("serving",),
        queries=(Query(_QUEUE, "mean wait"),),
        objective=(("queue_wait", "seconds"),),
        minimum=0,
    ),
    Panel(
        key="filters",
        id=6,
        title="Held up in front of the model",
        kind="timeseries",
        unit="short",
        description="Requests a minute that spent over 20 ms in middleware, filters and cleaning, by family of the "
        "caller's "
        "agent. One family alone: a rule that its agent string sends astray.",
        no_data=_NO_REQUESTS,
        queries=(Query(f"60 * ({_SLOW})", "{{agent_family}}"),),
        alerts=("regex_backtracking",),
        objective=(("regex_backtracking", "held_up"),),
        minimum=0,
    ),
    Panel(
        key="filters-p95",
        id=7,
        title="P95 in front of the model",
        kind="timeseries",
        unit="s",
        description="Middleware, filters and cleaning together, by family of the caller's agent; the body's arrival "
        "apart.",
        no_data=_NO_REQUESTS,
        queries=(Query(quantile(0.95, "model_filter_seconds", by="agent_family"), "{{agent_family}}"),),
        alerts=("regex_backtracking",),
        minimum=0,
    ),
)

_ENDS: Final = (
    Panel(
        key="in-flight",
        id=8,
        title="In flight",
        kind="timeseries",
        unit="short",
        description="Requests that started and have not ended, over live workers. In and out being equal, it is rate "
        "times "
        "latency; it climbs without end when something holds them.",
        no_data="No worker is seen.",
        queries=(Query(f"sum({pick('model_requests_in_flight')})", "in flight"),),
        minimum=0,
    ),
    Panel(
        key="oldest-request",
        id=9,
        title="Oldest request",
        kind="timeseries",
        unit="s",
        description="Age of the oldest request in flight. A straight climb of one second a second: it hangs.",
        no_data="No worker is seen.",
        queries=(Query(f"max({pick('model_oldest_request_age_seconds')})", "oldest"),),
        objective=(("request_stuck", "seconds"),),
        minimum=0,
    ),
    Panel(
        key="disconnects",
        id=10,
        title="Callers that gave up",
        kind="timeseries",
        unit="percentunit",
        description="Share of requests whose caller was gone before the answer. Up with latency: their patience "
        "ended; up "
        "without it: the caller's timeout is shorter than the objective.",
        no_data=_NO_REQUESTS,
        queries=(
            Query(
                share(
                    total("model_requests_total", is_("outcome", "disconnected")),
                    total("model_requests_total", 'outcome!="refused"'),
                ),
                "disconnected",
            ),
        ),
        objective=(("client_disconnects", "share"),),
        minimum=0,
    ),
    Panel(
        key="refusals",
        id=11,
        title="Refused, by reason",
        kind="timeseries",
        unit="short",
        description="Requests a minute that broke the contract, by rule. One reason from one client release: their "
        "release; not_found and method are mostly scanners and page nobody.",
        no_data="The exporter is not there.",
        leads_to=("model-data",),
        queries=(Query(per_minute("model_refused_total", by="reason"), "{{reason}}"),),
        alerts=("contract_violations",),
        objective=(("contract_violations", "refused"),),
        stack=True,
        minimum=0,
    ),
    Panel(
        key="outcomes",
        id=12,
        title="How requests ended",
        kind="timeseries",
        unit="reqps",
        description="Requests per second by how they ended.",
        no_data=_NO_REQUESTS,
        queries=(Query(total("model_requests_total", like("route", "$route"), by="outcome"), "{{outcome}}"),),
        stack=True,
        minimum=0,
    ),
    Panel(
        key="unfinished",
        id=13,
        title="Started and never ended",
        kind="timeseries",
        unit="short",
        description="Requests a minute that were in flight in a worker that died, by the last step that they reached.",
        no_data="The exporter is not there.",
        queries=(Query(per_minute("model_unfinished_requests_total", by="stage"), "{{stage}}"),),
        alerts=("worker_killed", "service_down"),
        minimum=0,
    ),
)

BOARD: Final = Board(
    "request-path",
    "Request path",
    "Where the time of requests goes, step by step, and how they end.",
    (
        Section("The whole request", _WHOLE),
        Section("Step by step", _STAGES),
        Section("In flight, and how they ended", _ENDS),
    ),
    (SERVICE, ROUTE, BUCKET),
)
