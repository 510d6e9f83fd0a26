"""Small pieces of a panel: where it asks, what it links to, from which value on which colour holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashboards.grafana_sdk import cog_builder, dashboard, models, prometheus, prometheus_models, runtime, variants
from dashboards.grafana_sdk import common as common_models
from dashboards.spec import Panel, Query, Source
from dashboards.thresholds import AlertFacts

__all__ = ["DATASOURCE_VARIABLES", "links", "mappings", "reference", "target", "threshold_lines", "thresholds"]

# Boards name their source by a variable, so that they also work beside somebody else's Prometheus.
DATASOURCE_VARIABLES: Final[Mapping[Source, str]] = {"prometheus": "datasource", "jaeger": "traces"}
_OBJECTIVE_COLOUR: Final = "red"


class Plain(cog_builder.Builder[variants.Dataquery]):
    """A query of a kind that the library has no builder for: Jaeger's, and Grafana's own of marks."""

    def __init__(self, data: dict[str, object]) -> None:
        self._data = data

    def build(self) -> variants.Dataquery:
        return runtime.UnknownDataquery(self._data)


def reference(source: Source) -> common_models.DataSourceRef:
    """Return the reference to a data source, by the board's variable."""
    return common_models.DataSourceRef(type_val=source, uid=f"${{{DATASOURCE_VARIABLES[source]}}}")


def target(panel: Panel, query: Query, number: int) -> cog_builder.Builder[variants.Dataquery]:
    """Return one question of a panel in Grafana's format.

    Args:
        panel: The panel.
        query: The question.
        number: Its place, from 0; the letter follows from it.
    """
    letter = chr(ord("A") + number)
    if panel.source == "jaeger":
        source = {"type": "jaeger", "uid": f"${{{DATASOURCE_VARIABLES['jaeger']}}}"}
        asked: dict[str, object] = {**query.search, "service": "${traced_service}"} if query.search else {}
        return Plain({"refId": letter, "datasource": source, "query": query.expr, **asked})
    built = prometheus.Dataquery().expr(query.expr).ref_id(letter).datasource(reference("prometheus"))
    built = built.instant() if query.instant else built.range()
    if query.legend:
        built = built.legend_format(query.legend)
    if query.exemplars:
        built = built.exemplar(True)
    if panel.kind == "table":
        built = built.format(prometheus_models.PromQueryFormat.TABLE)
    if panel.kind == "heatmap":
        built = built.format(prometheus_models.PromQueryFormat.HEATMAP)
    return built


# Why a board is opened when no alert has named one of its panels.
_SYMPTOM_OF_BOARD: Final = {
    "overview": "latency_objective",
    "request-path": "latency_objective",
    "session": "latency_objective",
    "gpu": "latency_objective",
    "serving": "queue_wait",
    "model-data": "confidence_p95_fall",
    "telemetry": "telemetry_loss",
}


def links(
    board: str, panel: Panel, alerts: Mapping[str, AlertFacts]
) -> list[cog_builder.Builder[models.DashboardLink]]:
    """Return a panel's links: boards that tell more, and runbooks of the alerts that lead to it or that it names.

    A panel that no alert is about leads to the page of the symptom that its board is opened for.

    Args:
        board: Name of its board.
        panel: The panel; an alert that it names and the catalogue does not hold gets no link.
        alerts: What the catalogue says.
    """
    more = [
        dashboard.DashboardLink(f"More: {name.replace('-', ' ')}")
        .type(models.DashboardLinkType.LINK)
        .url(f"/d/inferdeck-{name}?${{__url_time_range}}&${{__all_variables}}")
        for name in panel.leads_to
    ]
    leading = [slug for slug, facts in alerts.items() if facts.panel == f"{board}/{panel.key}"]
    named = [slug for slug in dict.fromkeys((*leading, *panel.alerts)) if slug in alerts]
    pages = [
        dashboard.DashboardLink(f"Runbook {alerts[slug].name}")
        .type(models.DashboardLinkType.LINK)
        .url(f"${{triage_url}}/runbooks/{alerts[slug].name}.md")
        .target_blank(True)
        for slug in named or [_SYMPTOM_OF_BOARD.get(board, "")]
        if slug in alerts
    ]
    return [*more, *pages]


def threshold_lines(panel: Panel, alerts: Mapping[str, AlertFacts]) -> list[tuple[float, str]]:
    """Return from which value on which colour holds, in ascending order: the panel's own, and the catalogue's.

    Args:
        panel: The panel.
        alerts: What the catalogue says.

    Raises:
        KeyError: If the catalogue holds the alert and not the threshold.
    """
    own = [(line.value, line.colour) for line in panel.lines]
    named = [(alerts[slug].thresholds[name], _OBJECTIVE_COLOUR) for slug, name in panel.objective if slug in alerts]
    return sorted(own + named)


def thresholds(panel: Panel, alerts: Mapping[str, AlertFacts]) -> cog_builder.Builder[models.ThresholdsConfig]:
    """Return the panel's colours in Grafana's format; the first holds from minus infinity on."""
    steps = [models.Threshold(value=None, color=panel.base)]
    steps += [models.Threshold(value=value, color=colour) for value, colour in threshold_lines(panel, alerts)]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def mappings(panel: Panel) -> list[models.ValueMapping]:
    """Return the words that stand for values, in Grafana's format."""
    if not panel.mappings:
        return []
    results = {
        value: models.ValueMappingResult(text=word, color=colour, index=index)
        for index, (value, (word, colour)) in enumerate(panel.mappings.items())
    }
    return [models.ValueMap(options=results)]
