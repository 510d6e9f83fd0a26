"""One Grafana rule per Prometheus rule: the same PromQL, unchanged, and Prometheus' notion of when it fires."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from alerts.generate import render_rule
from alerts.grafana.model import EXPRESSION, FormatError, NoDataState, Query, Rule
from alerts.grafana.texts import QUERY, grafana_text
from alerts.model import Alert
from alerts.yaml_text import parse

__all__ = [
    "DATASOURCE",
    "FOLDER",
    "GROUP_SECONDS",
    "UNREACHABLE",
    "grafana_rules",
    "group_interval",
    "rule_uid",
    "silenced",
    "unreachable_rule",
]

# Uid of the provisioned Prometheus (dashboards/spec.py says the same; `inferdeck check` compares with its file).
DATASOURCE: Final = "inferdeck-prometheus"
# A folder of its own: one that shares its title with a folder of dashboards becomes two, or stops Grafana.
FOLDER: Final = "inferdeck alerts"
# Grafana's scheduler ticks every 10 s and refuses groups that are no multiple of it.
GROUP_SECONDS: Final = 10
UNREACHABLE: Final = "prometheus_unreachable"
# An instant question needs no range, and Grafana refuses one of 0 s; the value is that of its own import.
_RANGE_SECONDS: Final = 600
# What Grafana itself writes into every step; an instant question does not depend on it.
_TIMING: Final[Mapping[str, int]] = {"intervalMs": 1000, "maxDataPoints": 43200}
_MATH, _THRESHOLD = "is_there", "fires"
_NO_DATA: Final[Mapping[str, NoDataState]] = {"ok": "OK", "alerting": "Alerting", "no_data": "NoData"}


def rule_uid(slug: str, name: str = "") -> str:
    """Return the uid of a rule, the same for ever.

    Args:
        slug: The catalogue's.
        name: The alert's name where one slug has several rules; empty for the first.
    """
    uid = f"inferdeck-{slug}" + (f"-{name}" if name else "")
    if len(uid) <= 40:
        return uid
    return f"{uid[:31]}-{hashlib.sha256(uid.encode()).hexdigest()[:8]}"


def grafana_rules(
    alerts: Sequence[Alert], panels: Mapping[str, Mapping[str, Any]], impacts: Mapping[str, str]
) -> dict[str, list[Rule]]:
    """Return the rules of each group; a group bears the slug, as in Prometheus.

    Args:
        alerts: The catalogue.
        panels: Panels by `<dashboard>/<panel>`: uid of the dashboard, id of the panel.
        impacts: What users feel, by slug.
    """
    found = {
        alert.slug: [
            _rule(alert, rule, number, alerts=alerts, panels=panels, impact=impacts.get(alert.slug))
            for number, rule in enumerate(_prometheus_rules(alert))
        ]
        for alert in alerts
    }
    return {slug: rules for slug, rules in found.items() if rules} | {UNREACHABLE: [unreachable_rule()]}


def group_interval(alert: Alert | None) -> str:
    """Return how often a group is evaluated, a multiple of the scheduler's tick.

    Args:
        alert: The group's alert; None for a group that only Grafana has.

    Raises:
        FormatError: For an interval that Grafana would refuse.
    """
    every = alert.every if alert and alert.every else f"{GROUP_SECONDS}s"
    seconds = int(every[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[every[-1]]
    if seconds % GROUP_SECONDS:
        raise FormatError(f"every {every} is no multiple of {GROUP_SECONDS} s: Grafana would not start")
    return f"{seconds}s"


def _prometheus_rules(alert: Alert) -> Iterator[Mapping[str, Any]]:
    """Yield the alerting rules of one alert as they are generated for Prometheus, so that nothing is said twice."""
    document, _ = parse(render_rule(alert))
    for group in document["groups"]:
        yield from (rule for rule in group["rules"] if "alert" in rule)


def _rule(
    alert: Alert,
    rule: Mapping[str, Any],
    number: int,
    *,
    alerts: Sequence[Alert],
    panels: Mapping[str, Mapping[str, Any]],
    impact: str | None,
) -> Rule:
    panel = panels.get(alert.panel or "")
    annotations = {name: grafana_text(text) for name, text in rule["annotations"].items()}
    if impact:
        annotations["impact"] = impact
    annotations["triage"] = f"inferdeck triage --alert {rule['alert']}"
    return Rule(
        uid=rule_uid(alert.slug, rule["alert"] if number else ""),
        title=rule["alert"],
        condition=_THRESHOLD,
        data=_steps(silenced(rule["expr"], rule["alert"], alerts)),
        for_=rule.get("for", "0s"),
        keep_firing_for=rule.get("keep_firing_for"),
        # Mostly OK: our PromQL yields series only when something is wrong, and itself says (by absent) when missing
        # data is wrong, so that an empty answer is the healthy one.
        no_data=_NO_DATA[alert.no_data_state],
        # A Prometheus that does not answer must neither end a page nor make one of each rule; UNREACHABLE tells it. The
        # sign of life, though, must stay away then.
        on_error="OK" if alert.kind == "meta" and alert.slug == "watchdog" else "KeepLast",
        # Prometheus adds the service by its external labels, which a question does not return.
        labels={**rule["labels"], "service": "${INFERDECK_SERVICE}"},
        annotations=annotations,
        dashboard_uid=str(panel["uid"]) if panel else None,
        panel_id=int(panel["id"]) if panel else None,
    )


def silenced(expr: str, name: str, alerts: Sequence[Alert]) -> str:
    """Return the expression without what an inhibiting alert makes superfluous.

    Grafana has no inhibitions (seen up to 13); Prometheus, which evaluates the same rules, shows what fires as
    `ALERTS`. Where it evaluates none, nothing is silenced.

    Args:
        expr: The rule's expression.
        name: The rule's alert.
        alerts: The catalogue.
    """
    slugs = {alert.slug for alert in alerts if alert.alert == name}
    sources: dict[tuple[str, ...], list[str]] = {}
    for source in alerts:
        for target in source.inhibits:
            if target.slug in slugs:
                # The service is an external label: within one Prometheus all series are of the same.
                equal = tuple(label for label in target.equal if label != "service")
                sources.setdefault(equal, []).append(source.alert)
    for equal, names in sorted(sources.items()):
        firing = f'ALERTS{{alertname=~"{"|".join(sorted(names))}", alertstate="firing"}}'
        expr = f"(\n{expr.strip()}\n)\nunless on ({', '.join(equal)}) {firing}"
    return expr


def _steps(expr: str) -> list[Query]:
    """Return the three steps by which Grafana's own import of Prometheus rules says "any answer fires"."""
    any_value = f"is_number(${QUERY}) || is_nan(${QUERY}) || is_inf(${QUERY})"
    math = Query(_MATH, EXPRESSION, {"type": "math", "expression": any_value, **_TIMING}, kind="math")
    return [_question(expr), math, _threshold(_MATH, above=0)]


def _question(expr: str) -> Query:
    model = {"expr": expr, "instant": True, "range": False, **_TIMING}
    return Query(QUERY, DATASOURCE, model, seconds=_RANGE_SECONDS, kind="prometheus")


def _threshold(step: str, above: float) -> Query:
    conditions = [{"evaluator": {"type": "gt", "params": [above]}}]
    model = {"type": "threshold", "expression": step, "conditions": conditions, **_TIMING}
    return Query(_THRESHOLD, EXPRESSION, model, kind="threshold")


def unreachable_rule() -> Rule:
    """Return the one rule that only Grafana can evaluate: Prometheus itself does not answer."""
    return Rule(
        uid=rule_uid(UNREACHABLE),
        title="PrometheusUnreachable",
        condition=_THRESHOLD,
        # Never true by itself: that the question fails, or has no answer, is the alert.
        data=[_question("vector(1)"), _threshold(QUERY, above=1)],
        for_="1m",
        no_data="Alerting",
        on_error="Alerting",
        labels={
            "slug": UNREACHABLE,
            "layer": "telemetry",
            "kind": "meta",
            "severity": "page",
            "channel": "page",
            "service": "${INFERDECK_SERVICE}",
        },
        annotations={
            "summary": "Prometheus does not answer Grafana",
            "description": "Grafana could not ask Prometheus for a minute or longer: no other alert can be told now.",
            "impact": "Whatever happens to the service meanwhile wakes nobody.",
            "first_step": "Run `inferdeck status`, or look at Prometheus' container; then `inferdeck doctor`.",
            "runbook_url": "runbooks/Watchdog.md",
            "triage": "inferdeck triage",
        },
    )
