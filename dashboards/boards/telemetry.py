"""Telemetry health: whether the instruments themselves can be trusted."""

from __future__ import annotations

from typing import Final

from dashboards.boards.variables import SERVICE
from dashboards.expr import per_minute, pick, total
from dashboards.spec import Board, Line, Panel, Query, Section

__all__ = ["BOARD"]

_NO_EXPORTER = "The exporter is not there: nothing about requests is counted."


def _grown(metric: str, by: str = "") -> str:
    # The window of the rule that watches the same.
    return f"sum {f'by ({by}) ' if by else ''}(increase({pick(metric)}[5m]))"


_PATH: Final = (
    Panel(
        key="scrapes",
        id=1,
        title="Scrapes that answered",
        kind="statetimeline",
        unit="short",
        description="Whether each target answered. A gap in all of them is Prometheus itself.",
        no_data="This Prometheus has no targets.",
        queries=(Query("min by (job, instance) (up)", "{{job}} {{instance}}"),),
        width=12,
        alerts=("exporter_unreachable", "service_down"),
        mappings={"0": ("down", "red"), "1": ("up", "green")},
    ),
    Panel(
        key="scrape-time",
        id=2,
        title="Time of a scrape",
        kind="timeseries",
        unit="s",
        description="How long each target took to answer; at the scrape's timeout it counts as down.",
        no_data="This Prometheus has no targets.",
        queries=(Query("max by (job) (scrape_duration_seconds)", "{{job}}"),),
        width=6,
        minimum=0,
    ),
    Panel(
        key="watchdog",
        id=3,
        title="Rules are evaluated",
        kind="stat",
        unit="short",
        description="The alert that always fires: while it does, rules are evaluated. That notifications leave is "
        "told by the "
        "dead man's switch that receives it.",
        no_data="The watchdog does not fire: no rule is evaluated, no alert can come.",
        queries=(Query('max(ALERTS{alertname="Watchdog", alertstate="firing"})', "watchdog"),),
        width=6,
        alerts=("watchdog",),
        mappings={"1": ("yes", "green")},
    ),
)

_ROWS: Final = (
    Panel(
        key="rows",
        id=4,
        title="Rows read",
        kind="timeseries",
        unit="rowsps",
        description="Rows per second that the exporter counted: one for each request.",
        no_data=_NO_EXPORTER,
        queries=(Query(total("telemetry_rows_read_total"), "rows"),),
        minimum=0,
    ),
    Panel(
        key="loss",
        id=5,
        title="Rows lost",
        kind="timeseries",
        unit="short",
        description="Rows in 5 minutes that were written and never counted, by why. overwritten: the exporter was away "
        "or too slow. "
        "Totals are then too low by so many.",
        no_data=_NO_EXPORTER,
        queries=(Query(_grown("telemetry_rows_lost_total", by="reason"), "{{reason}}"),),
        alerts=("exporter_unreachable",),
        objective=(("telemetry_loss", "rows"),),
        stack=True,
        minimum=0,
    ),
    Panel(
        key="unrecorded",
        id=6,
        title="Requests without a row",
        kind="timeseries",
        unit="short",
        description="Requests a minute that the recorder could not write, by why. The service answered them all the "
        "same.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("telemetry_requests_unrecorded_total", by="reason"), "{{reason}}"),
            Query(per_minute("telemetry_open_slots_overflow_total"), "no open slot"),
        ),
        alerts=("disk_full",),
        minimum=0,
    ),
    Panel(
        key="unread",
        id=7,
        title="Rows not yet read",
        kind="timeseries",
        unit="short",
        description="Rows that wait for the exporter. A climb ends in loss when the ring is full.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"sum({pick('telemetry_ring_unread_rows')})", "waiting"),),
        alerts=("exporter_unreachable",),
        minimum=0,
    ),
    Panel(
        key="rings",
        id=8,
        title="Ring files",
        kind="timeseries",
        unit="short",
        description="Files of rows: of live workers, kept of dead ones (last_flight), and unreadable.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"sum by (state) ({pick('telemetry_rings')})", "{{state}}"),),
        minimum=0,
    ),
    Panel(
        key="probes",
        id=9,
        title="Sensors that failed",
        kind="timeseries",
        unit="short",
        description="Failures a minute of the sensors inside the service, by sensor. One sensor lost costs one panel.",
        no_data="No sensor has failed, or the exporter is not there.",
        queries=(
            Query(
                per_minute("telemetry_probe_failures_total", by="probe"),
                "{{probe}}",
                may_be_empty="a series appears with the first failure of a sensor",
            ),
        ),
        minimum=0,
    ),
)

_SPANS: Final = (
    Panel(
        key="spans",
        id=10,
        title="Spans",
        kind="timeseries",
        unit="short",
        description="Spans a minute that the collector accepted, and that were dropped, by why. Dropped spans are "
        "missing in "
        "Jaeger; `inferdeck trace` still finds their requests.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("telemetry_spans_sent_total"), "sent"),
            Query(per_minute("telemetry_spans_dropped_total", by="reason"), "dropped: {{reason}}"),
            Query(f"sum({pick('telemetry_spans_queued')})", "waiting"),
        ),
        minimum=0,
        width=6,
    ),
    Panel(
        key="kept",
        id=11,
        title="Traces kept, by why",
        kind="timeseries",
        unit="short",
        description="Requests a minute whose spans were chosen for sending, by the first rule that chose them.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("telemetry_traces_kept_total", by="reason"), "{{reason}}"),
            Query(per_minute("telemetry_traces_shed_total", by="reason"), "shed by the budget: {{reason}}"),
        ),
        stack=True,
        minimum=0,
        width=6,
    ),
    Panel(
        key="archive",
        id=12,
        title="Archive",
        kind="timeseries",
        unit="bytes",
        description="Size of the archive, in which look-up finds requests that have left their ring.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"sum({pick('telemetry_archive_bytes')})", "archive"),),
        alerts=("disk_full",),
        minimum=0,
        width=4,
    ),
    Panel(
        key="reach",
        id=17,
        title="How far back look-up reaches",
        kind="timeseries",
        unit="s",
        description="Age of the oldest archived request. It grows to the archive's limit in hours or bytes.",
        no_data="Nothing is archived yet: requests are found in the rings of the workers.",
        queries=(
            Query(
                f"time() - min({pick('telemetry_archive_oldest_timestamp_seconds')})",
                "reaches back",
                may_be_empty="the first segment is sealed after minutes",
            ),
        ),
        width=4,
        minimum=0,
    ),
    Panel(
        key="writes",
        id=13,
        title="Failed writes",
        kind="timeseries",
        unit="short",
        description="Failures a minute of the exporter's state and of the archive, by why, and archived rows that "
        "were lost.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(per_minute("telemetry_state_write_errors_total", by="reason"), "state: {{reason}}"),
            Query(per_minute("telemetry_archive_errors_total", by="reason"), "archive: {{reason}}"),
            Query(per_minute("telemetry_archive_rows_lost_total", by="reason"), "rows lost: {{reason}}"),
        ),
        alerts=("disk_full",),
        minimum=0,
        width=4,
    ),
)

_COST: Final = (
    Panel(
        key="series",
        id=14,
        title="Series",
        kind="timeseries",
        unit="short",
        description="Series that the exporter shows. They are bounded by construction; a climb is a label with ids "
        "in it.",
        no_data=_NO_EXPORTER,
        queries=(Query(f"max({pick('telemetry_series')})", "series"),),
        alerts=("series_explosion",),
        objective=(("series_explosion", "series"),),
        minimum=0,
    ),
    Panel(
        key="labels-refused",
        id=15,
        title="Labels refused",
        kind="timeseries",
        unit="short",
        description="Values, attributes and stages a minute that the recorder refused, so that no label grows "
        "without end.",
        no_data=_NO_EXPORTER,
        queries=(Query(per_minute("telemetry_labels_refused_total", by="reason"), "{{reason}}"),),
        alerts=("series_explosion",),
        objective=(("series_explosion", "refused"),),
        minimum=0,
    ),
    Panel(
        key="exporter-cost",
        id=16,
        title="What the exporter takes",
        kind="timeseries",
        unit="short",
        description="CPU of the exporter, in cores, and how long its last look at all ring files took, in seconds.",
        no_data=_NO_EXPORTER,
        queries=(
            Query(total("telemetry_exporter_cpu_seconds_total"), "CPU, cores"),
            Query(f"max({pick('telemetry_exporter_tick_seconds')})", "one look, seconds"),
        ),
        lines=(Line(1, "orange"),),
        minimum=0,
    ),
)

_HEARD: Final = (
    Panel(
        key="notifications",
        id=18,
        title="Alerts that went astray",
        kind="timeseries",
        unit="short",
        description="In 5 minutes: rules that could not be evaluated, alerts that Alertmanager did not take, and those "
        "that no Alertmanager could be given.",
        no_data="Prometheus does not scrape itself here.",
        queries=(
            Query(_grown("prometheus_rule_evaluation_failures_total"), "rules that failed"),
            Query(
                _grown("prometheus_notifications_errors_total"),
                "not taken",
                may_be_empty="where Grafana is the notifier, Prometheus has no Alertmanager",
            ),
            Query(_grown("prometheus_notifications_dropped_total"), "given to nobody"),
        ),
        width=12,
        objective=(("notifications_lost", "lost"),),
        minimum=0,
    ),
    Panel(
        key="follow-ups",
        id=19,
        title="Follow-ups of triage",
        kind="timeseries",
        unit="short",
        description="Messages in 5 minutes by which triage told what it found, by channel and what became of them. "
        "All but sent are lost.",
        no_data="No receiver is set for follow-ups (docs/notifications.md), or none was due yet.",
        queries=(
            Query(
                _grown("telemetry_triage_follow_ups_total", by="channel, result"),
                "{{channel}}: {{result}}",
                may_be_empty="follow-ups are off until a receiver is set",
            ),
        ),
        width=12,
        alerts=("notifications_lost",),
        minimum=0,
    ),
)

BOARD: Final = Board(
    "telemetry",
    "Telemetry health",
    "Whether the instruments themselves can be trusted: what is lost is counted, by why.",
    (
        Section("The path of a figure", _PATH),
        Section("Rows", _ROWS),
        Section("Spans and archive", _SPANS),
        Section("Who hears of it", _HEARD),
        Section("Bounds and cost", _COST),
    ),
    (SERVICE,),
)
