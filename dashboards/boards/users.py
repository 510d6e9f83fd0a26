"""What users get: latency by length of input, errors, budget, traffic, and where the time goes."""

from __future__ import annotations

from typing import Final

from dashboards.expr import is_, like, mean, pick, quantile, rate, share, total
from dashboards.spec import Line, Panel, Query

__all__ = ["ERROR_SHARE", "USERS", "latency"]

_NO_REQUESTS = "No requests in this time."
_BUCKET = like("input_bucket", "$input_bucket")
_ROUTE = like("route", "$route")
_NOT_REFUSED = 'outcome!="refused"'
_NOT_OK = 'outcome!="ok"'
_ERROR = is_("outcome", "error")
# 99.9% of a month: budget of the rules in alerts/catalogue/error_budget_burn.yaml.
_BUDGET = 0.001
_STAGE = mean("model_stage_seconds", by="stage")

# As the rules count: what never ended in a worker that died has failed too, and what was refused was no attempt.
_UNFINISHED = rate("model_unfinished_requests_total")
_TRIED = f"sum({rate('model_requests_total', _NOT_REFUSED)} or {_UNFINISHED})"
ERROR_SHARE: Final = share(f"sum({rate('model_requests_total', _ERROR)} or {_UNFINISHED})", _TRIED)


def latency(key: str, identity: int, width: int) -> Panel:
    """Return the panel of the P95 by length of input, with the objectives as lines.

    Args:
        key: Its name within the board.
        identity: Its number within the board.
        width: Of 24 columns.
    """
    p95 = quantile(0.95, "model_latency_seconds", _BUCKET, by="input_bucket")
    return Panel(
        key=key,
        id=identity,
        title="P95 of answers by length of input",
        kind="timeseries",
        unit="s",
        description="95 of 100 answers were at least this fast. Dashed: the objectives, 0.3 s (under 100 characters), "
        "0.8 s (to 500) and 1.5 s. Diamonds are requests whose trace can be opened.",
        no_data=_NO_REQUESTS,
        queries=(Query(p95, "{{input_bucket}}", exemplars=True),),
        width=width,
        alerts=("latency_objective",),
        objective=(
            ("latency_objective", "short_seconds"),
            ("latency_objective", "medium_seconds"),
            ("latency_objective", "long_seconds"),
        ),
        minimum=0,
    )


def _burn(window: str) -> Query:
    expr = f"{pick(f'service:model_request_errors:ratio_rate{window}')} / {_BUDGET:g}"
    young = "the long windows are computed every two minutes: a younger stack has none" if window == "6h" else ""
    return Query(expr, f"over {window}", may_be_empty=young)


USERS: Final = (
    latency("latency", 10, 12),
    Panel(
        key="error-rate",
        id=11,
        title="Requests that got no full answer",
        kind="timeseries",
        unit="percentunit",
        description="Share of requests by how they ended, full answers left out: error is ours; refused is bad input; "
        "degraded got a lesser answer; disconnected gave up waiting.",
        no_data=_NO_REQUESTS,
        leads_to=(
            "request-path",
            "model-data",
        ),
        queries=(
            Query(
                f"{total('model_requests_total', _ROUTE, _NOT_OK, by='outcome')} "
                f"/ on () group_left () ({total('model_requests_total', _ROUTE)} > 0)",
                "{{outcome}}",
            ),
        ),
        width=12,
        objective=(("error_rate", "share"),),
        stack=True,
        minimum=0,
    ),
    Panel(
        key="error-budget",
        id=12,
        title="Burn of the error budget",
        kind="timeseries",
        unit="short",
        description="How many times faster than allowed errors use up the month's budget of 0.1%; 1 uses it up "
        "exactly. "
        "Lines: 14.4 (2% of the month in an hour: a page), 6 (5% in six hours: a page), 1 (a ticket).",
        no_data="No requests in this time, or the recording rules are not evaluated here.",
        queries=(_burn("5m"), _burn("1h"), _burn("6h")),
        objective=(
            ("error_budget_burn_slow", "days_burn"),
            ("error_budget_burn", "slow_burn"),
            ("error_budget_burn", "fast_burn"),
        ),
        minimum=0,
        width=6,
    ),
    Panel(
        key="traffic",
        id=13,
        title="Traffic by route",
        kind="timeseries",
        unit="reqps",
        description="Requests per second by route. A surge is no fault, and no alert looks at it; a fall to nothing is "
        "told by the service's own target, not by this.",
        no_data="No exporter, or no request since it started.",
        queries=(Query(total("model_requests_total", _ROUTE, by="route"), "{{route}}"),),
        stack=True,
        minimum=0,
        width=6,
    ),
    Panel(
        key="stage-time",
        id=14,
        title="Where the time goes",
        kind="timeseries",
        unit="s",
        description="Seconds that all requests together spend in each business step, per second. Steps inside "
        "scheduler.dispatch are part of it. What grows while traffic does not is the layer to look at.",
        no_data=_NO_REQUESTS,
        leads_to=(
            "request-path",
            "serving",
        ),
        queries=(Query(total("model_stage_seconds_sum", by="stage"), "{{stage}}"),),
        minimum=0,
        width=6,
    ),
    Panel(
        key="stage-change",
        id=15,
        title="Each step now against the time shown",
        kind="bargauge",
        unit="none",
        description="Mean time of each step in the last minutes over its mean in all the time shown; 1 is no change. "
        "The step that stands out is the layer; when all stand out alike, look at runtime and host. Show more time "
        "than "
        "the trouble has lasted.",
        no_data=_NO_REQUESTS,
        leads_to=("request-path",),
        queries=(
            Query(
                f"sort_desc(({_STAGE}) / ({_STAGE.replace('$__rate_interval', '$__range')}))", "{{stage}}", instant=True
            ),
        ),
        lines=(Line(1.5, "orange"), Line(3, "red")),
        minimum=0,
        decimals=1,
        width=6,
    ),
)
