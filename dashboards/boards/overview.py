"""Overview: is it us, which layer, since when."""

from __future__ import annotations

from typing import Final

from dashboards.boards.host import HOST
from dashboards.boards.users import ERROR_SHARE, USERS
from dashboards.boards.variables import BUCKET, ROUTE, SERVICE
from dashboards.expr import is_, pick, quantile, total
from dashboards.spec import Board, Line, Panel, Query, Section
from exporters.names import OBJECTIVES_SECONDS

__all__ = ["BOARD"]

_NO_REQUESTS = "No requests in this time."
_NO_RULES = "The rules are not evaluated here: even the watchdog is absent."
# As Prometheus itself shows an alert that fires; those that always fire are left out.
_FIRING = 'ALERTS{alertstate="firing", kind!="meta"}'
# 0 only where the watchdog proves that rules are evaluated at all; else no answer.
_NONE = 'max(0 * ALERTS{alertname="Watchdog"})'
_QUIET = "nothing fires while the service is healthy"
_EXPORTER = 'min(up{job="inferdeck-exporter"})'


def _over_objective(bucket: str, seconds: float) -> str:
    p95 = quantile(0.95, "model_latency_seconds", is_("input_bucket", bucket), by="input_bucket")
    return f"{p95} / {seconds:g}"


_NOW: Final = (
    Panel(
        key="firing",
        id=1,
        title="Alerts firing",
        kind="stat",
        unit="short",
        description="Alerts that fire now, the ones that always fire left out. Which, and since when, stands below.",
        no_data=_NO_RULES,
        queries=(Query(f"count({_FIRING}) or {_NONE}", "firing"),),
        width=4,
        height=4,
        lines=(Line(1, "red"),),
        decimals=0,
    ),
    Panel(
        key="errors-now",
        id=2,
        title="Failed requests",
        kind="stat",
        unit="percentunit",
        description="Share of requests that ended in an error of ours. Refusals of bad input are answers, not errors.",
        no_data=_NO_REQUESTS,
        leads_to=("request-path",),
        queries=(Query(ERROR_SHARE, "failed"),),
        width=4,
        height=4,
        alerts=("error_rate",),
        # The budget of a month is 0.1%; at 1% it is gone in three days.
        lines=(Line(0.001, "orange"), Line(0.01, "red")),
        decimals=2,
    ),
    Panel(
        key="latency-now",
        id=3,
        title="P95 over its objective",
        kind="stat",
        unit="percentunit",
        description="P95 of each length of input over its own objective (0.3, 0.8, 1.5 s), the worst of them. "
        "Over 100% the objective is missed.",
        no_data=_NO_REQUESTS,
        leads_to=("request-path",),
        queries=(
            Query(f"max({' or '.join(_over_objective(*item) for item in OBJECTIVES_SECONDS.items())})", "worst length"),
        ),
        width=4,
        height=4,
        alerts=("latency_objective",),
        lines=(Line(0.7, "orange"), Line(1, "red")),
        decimals=0,
    ),
    Panel(
        key="traffic-now",
        id=4,
        title="Requests",
        kind="stat",
        unit="reqps",
        description="Requests per second. Much traffic is no fault: no alert looks at it.",
        no_data="No exporter, or no request since it started.",
        queries=(Query(total("model_requests_total"), "requests"),),
        width=4,
        height=4,
        base="blue",
        decimals=1,
    ),
    Panel(
        key="service-now",
        id=5,
        title="Service",
        kind="stat",
        unit="short",
        description="Whether Prometheus reaches the service, the worst instance. Absent: it is not even a target.",
        no_data="The service is no target of this Prometheus.",
        leads_to=("telemetry",),
        queries=(Query('min(up{job="service"})', "service"),),
        width=4,
        height=4,
        alerts=("service_down",),
        mappings={"0": ("down", "red"), "1": ("up", "green")},
    ),
    Panel(
        key="telemetry-now",
        id=6,
        title="Telemetry",
        kind="stat",
        unit="short",
        description="Whether this page can be trusted: the exporter is reached and lost no rows in 5 minutes.",
        no_data="The exporter is no target of this Prometheus: this page is blind.",
        leads_to=("telemetry",),
        queries=(
            Query(
                f"{_EXPORTER} * ((1 - (sum(increase({pick('telemetry_rows_lost_total')}[5m])) > bool 0)) or vector(1))",
                "telemetry",
            ),
        ),
        width=4,
        height=4,
        alerts=("exporter_unreachable",),
        mappings={"0": ("blind", "red"), "1": ("trusted", "green")},
    ),
)

_SINCE: Final = (
    Panel(
        key="alerts-now",
        id=7,
        title="Which layer, since when",
        kind="table",
        unit="short",
        description="What fires now, the layer that it accuses, and since when. A symptom accuses none; its cause "
        "usually "
        "stands beside it. The alert's name leads to its runbook; `inferdeck triage` names the cause with its "
        "evidence.",
        no_data="Nothing fires.",
        queries=(
            Query(
                'max by (layer, alertname, severity) (1000 * ALERTS_FOR_STATE{kind!="meta"} '
                f"and on (alertname) {_FIRING})",
                instant=True,
                may_be_empty=_QUIET,
            ),
        ),
        width=9,
        height=6,
        columns={"layer": "Layer", "alertname": "Alert", "severity": "Severity", "Value": "Since"},
        units={"Since": "dateTimeFromNow"},
    ),
    Panel(
        key="alerts-timeline",
        id=8,
        title="Alerts over time",
        kind="statetimeline",
        unit="short",
        description="When each alert was pending and firing, by layer. What turned first is nearest to the cause.",
        no_data="No alert was pending or firing in this time.",
        queries=(
            Query(
                f"max by (layer, alertname) (2 * {_FIRING}) "
                'or max by (layer, alertname) (ALERTS{alertstate="pending", kind!="meta"})',
                "{{layer}}: {{alertname}}",
                may_be_empty=_QUIET,
            ),
        ),
        width=15,
        height=6,
        mappings={"1": ("pending", "yellow"), "2": ("firing", "red")},
    ),
)

BOARD: Final = Board(
    "overview",
    "Overview: is it us, which layer",
    "The first page at night: whether users suffer, which layer is at fault, since when, and where to go on.",
    (
        Section("Is it us?", (*_NOW, *_SINCE)),
        Section("What users get, and where its time goes", USERS),
        Section("Runtime and host", HOST),
    ),
    (SERVICE, ROUTE, BUCKET),
)
