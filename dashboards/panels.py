"""One builder for each kind of panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dashboards.grafana_sdk import (
    bargauge,
    common,
    common_builders,
    dashboard,
    heatmap,
    heatmap_models,
    models,
    stat,
    statetimeline,
    table,
    text,
    text_models,
    timeseries,
)
from dashboards.layout import Place
from dashboards.parts import links, mappings, reference, target, threshold_lines, thresholds
from dashboards.spec import Kind, Panel
from dashboards.thresholds import AlertFacts

__all__ = ["build_panel"]

_Alerts = Mapping[str, AlertFacts]
_Any = (
    timeseries.Panel
    | stat.Panel
    | heatmap.Panel
    | table.Panel
    | statetimeline.Panel
    | bargauge.Panel
    | text.Panel
    | dashboard.Panel
)
_LAST: Final = "lastNotNull"


def build_panel(board: str, panel: Panel, place: Place, alerts: _Alerts) -> _Any:
    """Return the panel in Grafana's format, yet to be built.

    Args:
        board: Name of its board.
        panel: The panel.
        place: Where it stands.
        alerts: What the catalogue says.
    """
    built = _KINDS[panel.kind](panel, alerts)
    built.id(panel.id).title(panel.title).description(panel.description)
    built.grid_pos(models.GridPos(h=place.h, w=place.w, x=place.x, y=place.y))
    built.datasource(reference(panel.source)).links(links(board, panel, alerts))
    built.targets([target(panel, query, number) for number, query in enumerate(panel.queries)])
    built.no_value(panel.no_data)
    if panel.kind != "text":
        built.unit(panel.unit).thresholds(thresholds(panel, alerts)).mappings(mappings(panel))
        for value, setter in ((panel.minimum, built.min), (panel.maximum, built.max), (panel.decimals, built.decimals)):
            if value is not None:
                setter(value)
    return built


def _timeseries(panel: Panel, alerts: _Alerts) -> _Any:
    many = len(panel.queries) > 1 or any("{{" in query.legend for query in panel.queries)
    built = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(30 if panel.stack else 8)
        .show_points(common.VisibilityMode.NEVER)
        # A short gap is a missed scrape; a longer one is an absence and must be seen as one.
        .span_nulls(60_000)
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
        .legend(
            common_builders.VizLegendOptions()
            .show_legend(True)
            .placement(common.LegendPlacement.BOTTOM)
            .display_mode(common.LegendDisplayMode.LIST)
            .calcs([_LAST] if many else [_LAST, "max"])
        )
        .tooltip(
            common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
        )
    )
    if panel.stack:
        built.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    if threshold_lines(panel, alerts):
        built.thresholds_style(
            common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        )
    return built


def _reduced() -> common_builders.ReduceDataOptions:
    return common_builders.ReduceDataOptions().calcs([_LAST]).values(False).fields("")


def _stat(panel: Panel, _alerts: _Alerts) -> _Any:
    plain = bool(panel.mappings)
    return (
        stat.Panel()
        .reduce_options(_reduced())
        .graph_mode(common.BigValueGraphMode.NONE if plain else common.BigValueGraphMode.AREA)
        .color_mode(common.BigValueColorMode.BACKGROUND if plain else common.BigValueColorMode.VALUE)
        .text_mode(common.BigValueTextMode.VALUE)
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    )


def _bargauge(_panel: Panel, _alerts: _Alerts) -> _Any:
    return (
        bargauge.Panel()
        .reduce_options(_reduced())
        .orientation(common.VizOrientation.HORIZONTAL)
        .display_mode(common.BarGaugeDisplayMode.BASIC)
        .value_mode(common.BarGaugeValueMode.COLOR)
        .name_placement(common.BarGaugeNamePlacement.LEFT)
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    )


def _heatmap(panel: Panel, _alerts: _Alerts) -> _Any:
    return (
        heatmap.Panel()
        # The series are counts of buckets already.
        .calculate(False)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_models.HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .steps(64)
            .reverse(False)
        )
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .cell_gap(1)
        .y_axis(heatmap.YAxisConfig().unit(panel.unit).axis_placement(common.AxisPlacement.LEFT))
        .exemplars_color("rgba(255,255,255,0.8)")
        .hide_legend()
    )


def _statetimeline(_panel: Panel, _alerts: _Alerts) -> _Any:
    return (
        statetimeline.Panel()
        .show_value(common.VisibilityMode.NEVER)
        .row_height(0.8)
        .fill_opacity(85)
        .line_width(0)
        .merge_values(True)
        .legend(
            common_builders.VizLegendOptions()
            .show_legend(True)
            .placement(common.LegendPlacement.BOTTOM)
            .display_mode(common.LegendDisplayMode.LIST)
        )
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    )


def _table(panel: Panel, _alerts: _Alerts) -> _Any:
    built = table.Panel().show_header(True)
    if panel.source == "jaeger":
        # The column is Jaeger's own; its link into Jaeger's view stays beside this one.
        here = "/d/inferdeck-session?${__url_time_range}&var-session_id=${session_id}&var-trace_id=${__value.raw}"
        below = {"title": "Open the waterfall below", "url": f"{here}&var-traced_service=${{traced_service}}"}
        built.override_by_regexp("/^trace ?id$/i", [models.DynamicConfigValue("links", [below])])
    if not panel.columns:
        return built
    # Only the columns that were asked for, in their order and under their headings.
    built.with_transformation(
        models.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": list(panel.columns)}})
    )
    built.with_transformation(
        models.DataTransformerConfig(
            id_val="organize",
            options={
                "indexByName": {name: index for index, name in enumerate(panel.columns)},
                "renameByName": dict(panel.columns),
                "excludeByName": {},
            },
        )
    )
    for heading, unit in panel.units.items():
        built.override_by_name(heading, [models.DynamicConfigValue("unit", unit)])
    if "alertname" in panel.columns:
        link = {"title": "Runbook", "url": "${triage_url}/runbooks/${__value.raw}.md", "targetBlank": True}
        built.override_by_name(panel.columns["alertname"], [models.DynamicConfigValue("links", [link])])
    return built


def _text(panel: Panel, _alerts: _Alerts) -> _Any:
    return text.Panel().mode(text_models.TextMode.MARKDOWN).content(panel.text)


def _traces(_panel: Panel, _alerts: _Alerts) -> _Any:
    return dashboard.Panel().type("traces")


_KINDS: Final[Mapping[Kind, Callable[[Panel, _Alerts], _Any]]] = {
    "timeseries": _timeseries,
    "stat": _stat,
    "bargauge": _bargauge,
    "heatmap": _heatmap,
    "statetimeline": _statetimeline,
    "table": _table,
    "text": _text,
    "traces": _traces,
}
