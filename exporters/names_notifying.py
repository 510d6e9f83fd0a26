"""Metrics of Prometheus and triage that tell whether alerts reach anybody: not the exporter's, so apart from `METRICS`.

Names as Prometheus' own page has them (2.42 and 3.x alike) and as runbooks/notify writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exporters.metric import Metric

__all__ = ["NOTIFYING"]

NOTIFYING: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric(
            "prometheus_notifications_errors_total",
            "counter",
            "alerts",
            "Alerts that an Alertmanager did not take.",
            labels={"alertmanager": ()},
            source="prometheus",
            job="prometheus",
        ),
        Metric(
            "prometheus_notifications_dropped_total",
            "counter",
            "alerts",
            "Alerts that no Alertmanager could be given.",
            source="prometheus",
            job="prometheus",
        ),
        Metric(
            "prometheus_rule_evaluation_failures_total",
            "counter",
            "evaluations",
            "Rules that could not be evaluated.",
            labels={"rule_group": ()},
            source="prometheus",
            job="prometheus",
        ),
        Metric(
            "telemetry_triage_follow_ups_total",
            "counter",
            "messages",
            "Follow-ups of triage by channel and what became of them; all but sent are losses.",
            labels={
                "channel": (),
                "result": ("sent", "refused", "gave_up", "no_room", "stopped"),
            },
            source="triage",
            job="triage",
        ),
    )
}
