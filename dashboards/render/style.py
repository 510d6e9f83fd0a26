"""Colours and sizes, near to Grafana's dark theme."""

from __future__ import annotations

from typing import Final

__all__ = ["BACKGROUND", "COLOURS", "DIM", "GRID", "MARK", "PALETTE", "PANEL", "TEXT", "colour"]

BACKGROUND: Final = "#111217"
PANEL: Final = "#181b1f"
GRID: Final = "#2c3037"
TEXT: Final = "#d0d1dc"
DIM: Final = "#8e909c"
MARK: Final = "#ffffff"
# For series in their order, as Grafana's classic palette has it.
PALETTE: Final = (
    "#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#96d98d", "#ffee52", "#ca95e5",
)  # fmt: skip
COLOURS: Final = {
    "green": "#73bf69",
    "yellow": "#fade2a",
    "orange": "#ff9830",
    "red": "#f2495c",
    "blue": "#5794f2",
    "purple": "#b877d9",
}


def colour(name: str) -> str:
    """Return a colour by Grafana's name for it; what is no name of ours is one already."""
    return COLOURS.get(name, name)
