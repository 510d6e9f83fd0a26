"""From a board to the JSON that Grafana provisions: a pure function, so that committed files can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dashboards.choices import marks, variables
from dashboards.grafana_sdk import dashboard, encoder, models
from dashboards.layout import lay_out
from dashboards.panels import build_panel
from dashboards.spec import Board
from dashboards.thresholds import AlertFacts

__all__ = ["build_board", "panels_of", "to_text"]

# Headings are not linked to; their ids only have to differ from those of panels.
_FIRST_HEADING = 1001


def build_board(board: Board, alerts: Mapping[str, AlertFacts]) -> dict[str, Any]:
    """Return the dashboard as Grafana reads it.

    Args:
        board: The board.
        alerts: What the catalogue says, by slug.
    """
    built = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags(["inferdeck"])
        .time(board.since, "now")
        .refresh("10s")
        .timezone("browser")
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .variables(variables(board))
        .annotations(marks(any(panel.source == "prometheus" and panel.queries for panel in board.panels)))
        .link(
            dashboard.DashboardLink("inferdeck")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["inferdeck"])
            .as_dropdown(False)
            .keep_time(True)
            .include_vars(True)
        )
        .link(
            dashboard.DashboardLink("Triage reports")
            .type(models.DashboardLinkType.LINK)
            .icon("external link")
            .url("${triage_url}/reports")
            .target_blank(True)
        )
    )
    for number, (section, heading, placed) in enumerate(lay_out(board.sections)):
        row = dashboard.Row(section.title).id(_FIRST_HEADING + number)
        built.with_row(row.grid_pos(models.GridPos(h=heading.h, w=heading.w, x=heading.x, y=heading.y)))
        for panel, place in placed:
            built.with_panel(build_panel(board.name, panel, place, alerts))
    whole = json.loads(encoder.JSONEncoder(sort_keys=True).encode(built.build()))
    return _clean(whole)


def to_text(document: object) -> str:
    """Return JSON as it is committed: sorted, indented, with a line feed at its end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def panels_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the panels of a dashboard's JSON, those of collapsed rows too, headings left out."""
    for panel in document["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", ())
        else:
            yield panel


def _clean(document: dict[str, Any]) -> dict[str, Any]:
    """Take away what the library adds and Grafana's own types do not know, and what would hide links in a menu."""
    for variable in document["templating"]["list"]:
        for key in ("auto", "auto_count", "auto_min"):
            variable.pop(key, None)
    for item in (*document["annotations"]["list"], *document["links"]):
        item.pop("placement", None)
    for panel in panels_of(document):
        if panel["type"] == "table":
            panel["options"].pop("footer", None)
        for link in panel.get("links", ()):
            link.pop("placement", None)
    return document
