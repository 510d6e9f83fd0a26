"""Where panels stand on Grafana's grid of 24 columns: from left to right, a heading above each section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.spec import Panel, Section

__all__ = ["COLUMNS", "Place", "lay_out"]

COLUMNS = 24


@dataclass(frozen=True)
class Place:
    """A rectangle of the grid: left, top, width and height, in columns and rows."""

    x: int
    y: int
    w: int
    h: int


def lay_out(sections: Sequence[Section]) -> list[tuple[Section, Place, list[tuple[Panel, Place]]]]:
    """Return each section with the place of its heading and of its panels.

    A panel that does not fit beside the others starts a new line, below the tallest of the line before.

    Args:
        sections: In their order.

    Raises:
        ValueError: For a panel wider than the grid.
    """
    found = []
    top = 0
    for section in sections:
        heading = Place(0, top, COLUMNS, 1)
        top += 1
        left = tallest = 0
        placed: list[tuple[Panel, Place]] = []
        for panel in section.panels:
            if not 0 < panel.width <= COLUMNS:
                raise ValueError(f"panel {panel.key} is {panel.width} columns wide; the grid has {COLUMNS}")
            if left + panel.width > COLUMNS:
                left, top, tallest = 0, top + tallest, 0
            placed.append((panel, Place(left, top, panel.width, panel.height)))
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest
        found.append((section, heading, placed))
    return found
