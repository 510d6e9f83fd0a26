"""Panels with an axis of time: lines, heat maps, states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dashboards.render.frames import Around, Frame
from dashboards.render.spelling import spell
from dashboards.render.style import BACKGROUND, DIM, GRID, MARK, PALETTE, TEXT, colour

__all__ = ["heatmap", "states", "timeseries"]

_LABELS_OF_BUCKETS = 8
# Seconds between two labels of the axis of time.
_TICKS = (60, 120, 300, 600, 1800, 3600, 10800, 21600, 86400)
_MOST_TICKS = 7


def timeseries(
    axes: Axes,
    panel: Mapping[str, Any],
    frames: Sequence[Frame],
    around: Around,
) -> None:
    """Draw lines, stacked where the panel says so, with thresholds, exemplars and marks.

    Args:
        axes: Where.
        panel: Its JSON.
        frames: Its series.
        around: What else is shown.
    """
    defaults = panel["fieldConfig"]["defaults"]
    stacked = defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal"
    below: dict[float, float] = {}
    highest = 0.0
    for number, frame in enumerate(frames):
        tint = PALETTE[number % len(PALETTE)]
        times = [at for at, _ in frame.points]
        values = np.array([value for _, value in frame.points], dtype=float)
        floor = np.array([below.get(at, 0.0) if stacked else 0.0 for at in times])
        top = floor + np.where(np.isfinite(values), values, 0.0) if stacked else values
        broken = _with_gaps(times, top.tolist())
        axes.plot([at for at, _ in broken], [value for _, value in broken], color=tint, linewidth=1.3)
        axes.fill_between(times, floor, top, color=tint, alpha=0.28 if stacked else 0.08, linewidth=0)
        if stacked:
            below |= dict(zip(times, top, strict=True))
        highest = max(highest, float(np.nanmax(top, initial=0.0)))
    shown = [(at, value) for at, value in around.exemplars if around.start <= at <= around.end]
    if shown:
        highest = max(highest, *(value for _, value in shown))
        axes.scatter(
            [at for at, _ in shown], [value for _, value in shown], marker="D", s=9, color=MARK, alpha=0.75, zorder=4
        )
    _thresholds(axes, defaults, highest)
    _frame_of_time(axes, around)
    if "min" in defaults:
        axes.set_ylim(bottom=defaults["min"])
    if highest == 0.0 and "max" not in defaults:
        axes.set_ylim(top=1.0)
    if "max" in defaults:
        axes.set_ylim(top=defaults["max"])
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: spell(value, defaults["unit"])))


def _with_gaps(times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    step = min((after - before for before, after in itertools.pairwise(times)), default=0.0)
    found: list[tuple[float, float]] = []
    for at, value in zip(times, values, strict=True):
        if found and at - found[-1][0] > max(60.0, 2 * step):
            found.append((at, math.nan))
        found.append((at, float(value)))
    return found


def _thresholds(axes: Axes, defaults: Mapping[str, Any], highest: float) -> None:
    if defaults.get("custom", {}).get("thresholdsStyle", {}).get("mode") != "dashed":
        return
    for step in defaults["thresholds"]["steps"][1:]:
        # A line far above everything would press the data flat.
        if step["value"] <= max(4 * highest, 1e-12) or highest == 0.0:
            axes.axhline(step["value"], color=colour(step["color"]), linewidth=1, linestyle=(0, (5, 4)), alpha=0.9)


def _frame_of_time(axes: Axes, around: Around) -> None:
    for mark in around.marks:
        axes.axvline(mark.at, color=colour(mark.colour), linewidth=1, linestyle=(0, (2, 3)), alpha=0.8, zorder=3)
    axes.set_xlim(around.start, around.end)
    axes.set_facecolor("none")
    axes.grid(color=GRID, linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=DIM, labelsize=7.5, length=0)
    span = around.end - around.start
    step = next((size for size in _TICKS if span / size <= _MOST_TICKS), _TICKS[-1])
    axes.set_xticks(np.arange(math.ceil(around.start / step) * step, around.end, step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: datetime.fromtimestamp(at, UTC).strftime("%H:%M")))


def heatmap(
    axes: Axes,
    panel: Mapping[str, Any],
    frames: Sequence[Frame],
    around: Around,
) -> None:
    """Draw how many fell into each bucket at each time; only the buckets in use are shown.

    Args:
        axes: Where.
        panel: Its JSON.
        frames: One for each upper bound, counts cumulated as Prometheus keeps them.
        around: What else is shown.
    """
    unit = panel["fieldConfig"]["defaults"]["unit"]
    ordered = sorted(frames, key=lambda frame: float(frame.labels["le"]))
    times = sorted({at for frame in ordered for at, _ in frame.points})
    table = np.zeros((len(ordered), len(times)))
    place = {at: column for column, at in enumerate(times)}
    for row, frame in enumerate(ordered):
        for at, value in frame.points:
            table[row, place[at]] = value
    counts = np.clip(np.diff(table, axis=0, prepend=0.0), 0.0, None)
    used = np.flatnonzero(counts.sum(axis=1) > 0)
    first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, len(ordered))
    counts, bounds = counts[first:last], [float(frame.labels["le"]) for frame in ordered][first:last]
    shown = np.ma.masked_less_equal(counts, 0.0)
    step = times[1] - times[0] if len(times) > 1 else 1.0
    edges = np.array([*times, times[-1] + step]) - step / 2
    axes.pcolormesh(edges, np.arange(len(bounds) + 1), shown, cmap="YlOrRd_r", edgecolors=BACKGROUND, linewidth=0.3)
    for at, value in around.exemplars:
        row = int(np.searchsorted(bounds, value))
        if row < len(bounds):
            axes.scatter([at], [row + 0.5], marker="D", s=9, color=MARK, alpha=0.75, zorder=4)
    _frame_of_time(axes, around)
    every = max(1, math.ceil(len(bounds) / _LABELS_OF_BUCKETS))
    axes.set_yticks(np.arange(1, len(bounds) + 1, every))
    axes.set_yticklabels(["∞" if math.isinf(bound) else spell(bound, unit) for bound in bounds[::every]])
    axes.set_ylim(0, len(bounds))


def states(axes: Axes, panel: Mapping[str, Any], frames: Sequence[Frame], around: Around) -> None:
    """Draw a bar for each series, coloured by the word that stands for its value.

    Args:
        axes: Where.
        panel: Its JSON.
        frames: Its series.
        around: What else is shown.
    """
    words = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    step = min(
        (
            after[0] - before[0]
            for frame in frames
            for before, after in zip(frame.points, frame.points[1:], strict=False)
        ),
        default=15.0,
    )
    for row, frame in enumerate(reversed(frames)):
        for at, value in frame.points:
            known = words.get(f"{value:g}")
            axes.broken_barh([(at, step * 1.02)], (row + 0.15, 0.7), color=colour(known["color"]) if known else GRID)
    _frame_of_time(axes, around)
    axes.set_yticks(np.arange(len(frames)) + 0.5)
    axes.set_yticklabels([frame.name for frame in reversed(frames)], color=TEXT)
    axes.set_ylim(0, max(len(frames), 1))
    axes.grid(visible=False, axis="y")
