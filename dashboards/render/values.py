"""Panels of single values: big numbers, bars, tables."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from dashboards.render.frames import Frame
from dashboards.render.spelling import spell
from dashboards.render.style import BACKGROUND, DIM, GRID, TEXT, colour

__all__ = ["bars", "big_number", "table"]


def _colour_of(value: float, defaults: Mapping[str, Any]) -> str:
    name = "green"
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            name = step["color"]
    return colour(name)


def _word(value: float, defaults: Mapping[str, Any]) -> tuple[str, str] | None:
    for mapping in defaults.get("mappings", ()):
        found = mapping["options"].get(f"{value:g}")
        if found:
            return found["text"], colour(found["color"])
    return None


def big_number(axes: Axes, panel: Mapping[str, Any], frames: Sequence[Frame]) -> None:
    """Draw the newest value, large, over the line of its past; a value with a word fills its panel.

    Args:
        axes: Where.
        panel: Its JSON.
        frames: Its series; the first is shown.
    """
    defaults = panel["fieldConfig"]["defaults"]
    frame = frames[0]
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    word = _word(frame.last, defaults)
    if word is not None:
        axes.set_ylim(0, 1)
        axes.add_patch(Rectangle((0, 0), 1, 1, color=word[1], alpha=0.85))
        axes.text(0.5, 0.5, word[0], ha="center", va="center", color=BACKGROUND, fontsize=21, fontweight="bold")
        return
    tint = _colour_of(frame.last, defaults)
    values = [value for _, value in frame.points]
    if len(values) > 1:
        places = [number / (len(values) - 1) for number in range(len(values))]
        top = max(*values, 1e-12)
        axes.fill_between(places, 0, values, color=tint, alpha=0.18, linewidth=0)
        axes.plot(places, values, color=tint, linewidth=1.2, alpha=0.8)
        axes.set_ylim(min(0.0, *values), top * 2.4)
    text = spell(frame.last, defaults["unit"], defaults.get("decimals"))
    axes.text(
        0.5, 0.62, text, transform=axes.transAxes, ha="center", va="center", color=tint, fontsize=23, fontweight="bold"
    )


def bars(axes: Axes, panel: Mapping[str, Any], frames: Sequence[Frame]) -> None:
    """Draw a bar for each series, its name to the left and its value to the right.

    Args:
        axes: Where.
        panel: Its JSON.
        frames: Its series.
    """
    defaults = panel["fieldConfig"]["defaults"]
    axes.set_axis_off()
    most = max(*(frame.last for frame in frames), 1e-12)
    for row, frame in enumerate(reversed(frames)):
        tint = _colour_of(frame.last, defaults)
        axes.barh(row, 1.0, left=0.0, height=0.62, color=GRID, alpha=0.5)
        axes.barh(row, max(frame.last, 0.0) / most, left=0.0, height=0.62, color=tint, alpha=0.85)
        axes.text(-0.02, row, frame.name, ha="right", va="center", color=TEXT, fontsize=8)
        value = spell(frame.last, defaults["unit"], defaults.get("decimals"))
        axes.text(1.02, row, value, ha="left", va="center", color=tint, fontsize=8.5, fontweight="bold")
    axes.set_xlim(-0.8, 1.3)
    axes.set_ylim(-0.6, max(len(frames), 4) - 0.4)


def table(axes: Axes, panel: Mapping[str, Any], frames: Sequence[Frame], now: float | None = None) -> None:
    """Draw rows under their headings.

    Args:
        axes: Where.
        panel: Its JSON, whose transformations say which columns there are.
        frames: One for each row.
        now: Seconds since 1970 that times are told from; the wall clock's when None.
    """
    names: dict[str, str] = {}
    for transformation in panel.get("transformations", ()):
        options = transformation["options"]
        order = options.get("indexByName", {})
        names |= {name: options["renameByName"][name] for name in sorted(order, key=order.__getitem__)}
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    lines = [[_cell(name, frame, time.time() if now is None else now) for name in names] for frame in frames]
    # Columns are as wide as what they hold, and a little air.
    widths = [
        max(len(text) for text in (heading, *cells)) + 3 for heading, *cells in zip(names.values(), *lines, strict=True)
    ]
    starts = [sum(widths[:number]) / max(sum(widths), 1) for number in range(len(widths))]
    height = min(0.17, 0.9 / (len(lines) + 1))
    for start, heading in zip(starts, names.values(), strict=True):
        axes.text(start, 0.96, heading, va="top", color=colour("blue"), fontsize=8.5, fontweight="bold")
    for row, cells in enumerate(lines):
        top = 0.96 - height * (row + 1)
        axes.axhline(top + height * 0.25, color=GRID, linewidth=0.8)
        for start, cell in zip(starts, cells, strict=True):
            axes.text(start, top, cell, va="top", color=TEXT, fontsize=8.5)
    if not lines:
        axes.text(
            0.5, 0.5, panel["fieldConfig"]["defaults"]["noValue"], ha="center", va="center", color=DIM, fontsize=9
        )


def _cell(name: str, frame: Frame, now: float) -> str:
    if name != "Value":
        return str(frame.labels.get(name, ""))
    # The only values in tables of ours are times, in milliseconds as Grafana wants them.
    return f"{spell(max(now - frame.last / 1000, 0), 's', 0)} ago"
