"""What a dashboard says, free of Grafana's format: plain values that builders, checks and pictures read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "JAEGER",
    "PROMETHEUS",
    "Board",
    "Kind",
    "Line",
    "Panel",
    "Query",
    "Section",
    "Source",
    "Variable",
    "by_key",
]

Kind = Literal["stat", "timeseries", "heatmap", "table", "statetimeline", "bargauge", "text", "traces"]
Source = Literal["prometheus", "jaeger"]
# Uids of the provisioned data sources; fixed from day one, since a changed uid stops Grafana at its start.
PROMETHEUS = "inferdeck-prometheus"
JAEGER = "inferdeck-jaeger"


@dataclass(frozen=True)
class Query:
    """One question of a panel.

    Attributes:
        expr: PromQL; for Jaeger the trace id, or empty for a search.
        legend: Grafana's legend, `{{label}}` for the value of a label.
        instant: Asked for now instead of for each moment of the time shown.
        exemplars: Show exemplars, which lead to traces.
        search: Jaeger's search: operation, tags, limit; empty for a look-up by trace id.
        may_be_empty: Why a healthy service under load has no answer to it; empty when it must have one.
    """

    expr: str
    legend: str = ""
    instant: bool = False
    exemplars: bool = False
    search: dict[str, str | int] = field(default_factory=dict)
    may_be_empty: str = ""


@dataclass(frozen=True)
class Line:
    """A threshold: from *value* on (in the panel's unit) the colour applies."""

    value: float
    colour: str


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        key: Its name within the board; `<board>/<key>` in panels.json, never changed.
        id: Its number within the board, never changed and never given away again: alerts and links hold it.
        kind: Grafana's panel type, without dashes.
        unit: Grafana's id of the unit.
        description: What it shows, and what to conclude from it.
        no_data: What is said when there is nothing to show, and why that can be.
        width: Of 24 columns.
        height: In rows of 30 pixels.
        alerts: Slugs of the catalogue whose runbooks it links to.
        leads_to: Names of boards that tell more, linked to with the time and the choices of this one.
        lines: Colours from a value on, besides those of `objective`.
        objective: Catalogue's slug and names of thresholds to draw as lines.
        stack: Draw the series on top of each other.
        minimum, maximum: Ends of the axis.
        decimals: Digits behind the point.
        columns: Of a table, in their order: label or field -> heading.
        units: Of a table, heading -> unit.
        text: Markdown of a text panel.
        source: Where its questions go.
        base: Colour below the first line.
        mappings: Value -> text and colour.
    """

    key: str
    id: int
    title: str
    kind: Kind
    unit: str
    description: str
    no_data: str
    queries: tuple[Query, ...]
    width: int = 8
    height: int = 8
    alerts: tuple[str, ...] = ()
    leads_to: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    objective: tuple[tuple[str, str], ...] = ()
    stack: bool = False
    minimum: float | None = None
    maximum: float | None = None
    decimals: int | None = None
    columns: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    text: str = ""
    source: Source = "prometheus"
    base: str = "green"
    mappings: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A heading and the panels below it, laid out from left to right."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a board.

    Attributes:
        name: As queries name it, without the dollar sign.
        label: As readers see it.
        metric: Metric whose label's values are offered; empty for a text box.
        of: The label.
        may_be_empty: Why a healthy service has no value of it; empty when it must have one.
    """

    name: str
    label: str
    metric: str = ""
    of: str = ""
    may_be_empty: str = ""


@dataclass(frozen=True)
class Board:
    """One dashboard; its short name is the uid without `inferdeck-`, and `since` the begin of the time first shown."""

    name: str
    title: str
    description: str
    sections: tuple[Section, ...]
    variables: tuple[Variable, ...] = ()
    since: str = "now-1h"

    @property
    def uid(self) -> str:
        """Grafana's uid of the dashboard."""
        return f"inferdeck-{self.name}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, in the order in which they stand."""
        return tuple(panel for section in self.sections for panel in section.panels)


def by_key(boards: tuple[Board, ...]) -> dict[str, tuple[Board, Panel]]:
    """Return every panel by `<board>/<key>`.

    Raises:
        ValueError: If a key, or an id within a board, is given twice.
    """
    found: dict[str, tuple[Board, Panel]] = {}
    for board in boards:
        ids: set[int] = set()
        for panel in board.panels:
            key = f"{board.name}/{panel.key}"
            if key in found:
                raise ValueError(f"two panels bear the key {key}")
            if panel.id in ids:
                raise ValueError(f"two panels of {board.uid} bear the id {panel.id}")
            ids.add(panel.id)
            found[key] = (board, panel)
    return found
