"""What stands around the panels: variables at the top, and marks on the axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashboards.expr import is_, pick
from dashboards.grafana_sdk import cog_builder, dashboard, models
from dashboards.grafana_sdk import common as common_models
from dashboards.parts import DATASOURCE_VARIABLES, Plain, reference
from dashboards.spec import JAEGER, PROMETHEUS, Board, Source, Variable

__all__ = ["MARKS", "TRIAGE_URL", "Mark", "marks", "variables"]

# Where triage answers on the reader's own machine (docs/architecture.md, section 1).
TRIAGE_URL: Final = "http://127.0.0.1:9465"
_DEFAULTS: Final[dict[Source, tuple[str, str]]] = {
    "prometheus": ("Prometheus (inferdeck)", PROMETHEUS),
    "jaeger": ("Jaeger (inferdeck)", JAEGER),
}
_SERVICE_IN_JAEGER: Final = "sentiment"


@dataclass(frozen=True)
class Mark:
    """A kind of event on the axis of time.

    Attributes:
        name: As readers switch it on and off.
        expr: Has a value while the event is.
        title: With `{{label}}`.
        colour: Of the line.
        may_be_empty: Why there is none while all is well; empty when there must be one.
    """

    name: str
    expr: str
    title: str
    colour: str
    may_be_empty: str = ""


_BUILD: Final = "max by (version, commit, model, config)"
MARKS: Final = (
    Mark(
        "Deploys",
        f"{_BUILD} ({pick('model_build_info')}) unless {_BUILD} ({pick('model_build_info')} offset 1m)",
        "runs now: version {{version}}, commit {{commit}}, model {{model}}, configuration {{config}}",
        "blue",
    ),
    Mark(
        "Ended workers",
        f"sum by (how) (increase({pick('model_worker_ends_total')}[1m])) > 0",
        "a worker ended: {{how}}",
        "purple",
        may_be_empty="no worker ends while nothing is restarted",
    ),
    Mark(
        "Incidents",
        f'max by (alertname, layer) (ALERTS{{{is_("alertstate", "firing")}, kind="failure"}})',
        "{{alertname}} ({{layer}})",
        "red",
        may_be_empty="nothing fires while the service is healthy",
    ),
)


def marks(asked: bool) -> list[cog_builder.Builder[models.AnnotationQuery]]:
    """Return the marks of a board in Grafana's format.

    Args:
        asked: Whether the board asks Prometheus at all; else only Grafana's own marks are shown.
    """
    found: list[cog_builder.Builder[models.AnnotationQuery]] = [
        dashboard.AnnotationQuery()
        .name("Annotations and alerts")
        .datasource(common_models.DataSourceRef(type_val="grafana", uid="-- Grafana --"))
        .enable(True)
        .hide(True)
        .icon_color("rgba(0, 211, 255, 1)")
        .built_in(1)
        .type("dashboard")
    ]
    if not asked:
        return found
    return (
        found
        + [
            dashboard.AnnotationQuery()
            .name(mark.name)
            .datasource(reference("prometheus"))
            .enable(True)
            .hide(False)
            .icon_color(mark.colour)
            .expr(mark.expr)
            .title_format(mark.title)
            .step("15s")
            for mark in MARKS
        ]
        + [_told()]
    )


def _told() -> cog_builder.Builder[models.AnnotationQuery]:
    """Return the marks that triage and `inferdeck grafana annotate` write: they bear a tag, and belong to no board."""
    return (
        dashboard.AnnotationQuery()
        .name("Verdicts and notes")
        .datasource(common_models.DataSourceRef(type_val="grafana", uid="-- Grafana --"))
        .enable(True)
        .hide(False)
        .icon_color("orange")
        .target(Plain({"type": "tags", "tags": ["inferdeck"], "matchAny": False, "limit": 100}))
    )


def variables(board: Board) -> list[cog_builder.Builder[models.VariableModel]]:
    """Return the choices of a board in Grafana's format: its data sources first.

    Args:
        board: The board.
    """
    sources: Sequence[Source] = sorted({panel.source for panel in board.panels}, reverse=True)
    found: list[cog_builder.Builder[models.VariableModel]] = []
    for source in sources:
        words, uid = _DEFAULTS[source]
        found.append(
            dashboard.DatasourceVariable(DATASOURCE_VARIABLES[source])
            .label("Metrics" if source == "prometheus" else "Traces")
            .type(source)
            .current(models.VariableOption(selected=True, text=words, value=uid))
        )
    found += [_query(variable) if variable.metric else _text(variable) for variable in board.variables]
    found.append(dashboard.ConstantVariable("triage_url").label("Address of triage").value(TRIAGE_URL))
    return found


def _query(variable: Variable) -> cog_builder.Builder[models.VariableModel]:
    asked = f"label_values({variable.metric}, {variable.of})"
    return (
        dashboard.QueryVariable(variable.name)
        .label(variable.label)
        .datasource(reference("prometheus"))
        .query(
            {
                "query": asked,
                "refId": f"variable-{variable.name}",
                "qryType": 1,
                "label": variable.of,
                "metric": variable.metric,
            }
        )
        .definition(asked)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        # Matches a series without the label as well.
        .all_value(".*")
        .current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def _text(variable: Variable) -> cog_builder.Builder[models.VariableModel]:
    value = _SERVICE_IN_JAEGER if variable.name == "traced_service" else ""
    return (
        dashboard.TextBoxVariable(variable.name)
        .label(variable.label)
        .default_value(value)
        .current(models.VariableOption(selected=True, text=value, value=value))
    )
