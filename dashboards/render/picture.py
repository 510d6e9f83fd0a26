"""One picture of one dashboard, laid out as Grafana would."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from dashboards.macros import Moment
from dashboards.prometheus_http import Prometheus, QueryError
from dashboards.render.frames import Around, Frame, MarkAt, ask_panel, exemplars_of, marks_at
from dashboards.render.plots import heatmap, states, timeseries
from dashboards.render.spelling import spell
from dashboards.render.style import BACKGROUND, DIM, PALETTE, PANEL, TEXT
from dashboards.render.values import bars, big_number, table

__all__ = ["CAPTION", "draw"]

CAPTION = "Drawn by us from the same queries and the same layout; not a screenshot of Grafana."
_WIDTH, _ROW, _HEAD, _COLUMNS = 1600, 34, 64, 24
_TALL = frozenset({"timeseries", "heatmap", "state-timeline"})


def draw(
    document: Mapping[str, Any], prometheus: Prometheus, moment: Moment, path: Path, title: str = ""
) -> tuple[int, int]:
    """Draw a dashboard into a PNG file.

    Args:
        document: Its JSON.
        prometheus: The server.
        moment: What is on the screen.
        path: The file.
        title: What was going on, for the line below the dashboard's title.

    Returns:
        How many panels hold data, and how many there are.

    Raises:
        QueryError: When Prometheus does not answer.
    """
    height = _HEAD + _ROW * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in document["panels"]) + 8
    figure = Figure(figsize=(_WIDTH / 100, height / 100), dpi=100, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    figure.text(
        14 / _WIDTH, 1 - 20 / height, document["title"], color=TEXT, fontsize=14, fontweight="bold", va="center"
    )
    shown = " to ".join(
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") for at in (moment.start, moment.end)
    )
    figure.text(14 / _WIDTH, 1 - 45 / height, f"{shown} UTC.  {title}", color=DIM, fontsize=9, va="center")
    figure.text(1 - 14 / _WIDTH, 1 - 20 / height, CAPTION, color="#ff9830", fontsize=9, va="center", ha="right")
    marks = marks_at(document, prometheus, moment)
    filled = total = 0
    for panel in document["panels"]:
        box = _box(panel["gridPos"], height)
        if panel["type"] == "row":
            figure.text(
                box[0],
                box[1] + box[3] / 2,
                f"▾ {panel['title']}",
                color=TEXT,
                fontsize=10.5,
                fontweight="bold",
                va="center",
            )
            continue
        total += 1
        filled += _panel(figure, panel, box, height, (prometheus, moment, marks))
    _save(figure, path)
    return filled, total


def _box(place: Mapping[str, int], height: int) -> tuple[float, float, float, float]:
    """Return left, bottom, width and height of a panel as shares of the picture, with a gap around it."""
    gap, column = 4, (_WIDTH - 12) / _COLUMNS
    left, top = 6 + place["x"] * column, _HEAD + place["y"] * _ROW
    wide, high = place["w"] * column, place["h"] * _ROW
    return (
        (left + gap / 2) / _WIDTH,
        1 - (top + high - gap / 2) / height,
        (wide - gap) / _WIDTH,
        (high - gap) / height,
    )


def _panel(
    figure: Figure,
    panel: Mapping[str, Any],
    box: tuple[float, float, float, float],
    height: int,
    world: tuple[Prometheus, Moment, Sequence[MarkAt]],
) -> bool:
    """Draw one panel and return whether it had something to show."""
    prometheus, moment, _marks = world
    left, bottom, wide, high = box
    figure.add_artist(Rectangle((left, bottom), wide, high, transform=figure.transFigure, facecolor=PANEL, zorder=-1))
    figure.text(
        left + 9 / _WIDTH,
        bottom + high - 14 / height,
        panel["title"],
        color=TEXT,
        fontsize=9.5,
        fontweight="bold",
        va="center",
    )
    kind = panel["type"]
    frames = ask_panel(panel, prometheus, moment)
    if kind == "text" or not frames:
        words = panel["options"]["content"] if kind == "text" else panel["fieldConfig"]["defaults"]["noValue"]
        columns = max(int(wide * _WIDTH / 7), 20)
        lines = [part for line in words.splitlines() for part in (textwrap.wrap(line, columns) or [""])]
        figure.text(
            left + wide / 2, bottom + high / 2, "\n".join(lines), color=DIM, fontsize=9, ha="center", va="center"
        )
        return bool(kind == "text")
    legend = 18 if kind in {"timeseries"} else 0
    side = 56 if kind in _TALL else 10
    if kind == "state-timeline":
        side = 24 + 6 * max(len(frame.name) for frame in frames)
    axes = figure.add_axes(
        (
            left + side / _WIDTH,
            bottom + ((22 if kind in _TALL else 8) + legend) / height,
            wide - (side + 14) / _WIDTH,
            high - ((34 if kind in _TALL else 36) + (22 if kind in _TALL else 8) + legend - 6) / height,
        )
    )
    _fill(axes, panel, frames, world)
    if legend:
        _legend(figure, frames, panel, (left, bottom, wide), height)
    return True


def _fill(
    axes: Axes,
    panel: Mapping[str, Any],
    frames: Sequence[Frame],
    world: tuple[Prometheus, Moment, Sequence[MarkAt]],
) -> None:
    prometheus, moment, marks = world
    kind = panel["type"]
    around = Around(exemplars_of(panel, prometheus, moment), marks, moment.start, moment.end)
    if kind == "timeseries":
        timeseries(axes, panel, frames, around)
    elif kind == "heatmap":
        heatmap(axes, panel, frames, around)
    elif kind == "state-timeline":
        states(axes, panel, frames, around)
    elif kind == "stat":
        big_number(axes, panel, frames)
    elif kind == "bargauge":
        bars(axes, panel, frames)
    elif kind == "table":
        table(axes, panel, frames, moment.end)
    else:
        raise QueryError(f"panels of the kind {kind} are not drawn")


def _legend(
    figure: Figure, frames: Sequence[Frame], panel: Mapping[str, Any], box: tuple[float, float, float], height: int
) -> None:
    left, bottom, wide = box
    unit, at, room = panel["fieldConfig"]["defaults"]["unit"], 10.0, wide * _WIDTH - 12
    # The largest first: what does not fit is mostly what did not happen.
    ordered = sorted(enumerate(frames), key=lambda pair: -abs(pair[1].last) if math.isfinite(pair[1].last) else 0.0)
    for number, (place, frame) in enumerate(ordered):
        words = f"{frame.name}  {spell(frame.last, unit)}"
        need = 24 + 5.6 * len(words)
        if at + need > room - (70 if number < len(ordered) - 1 else 0) and number:
            figure.text(
                left + at / _WIDTH,
                bottom + 11 / height,
                f"and {len(frames) - number} more",
                color=DIM,
                fontsize=7.5,
                va="center",
            )
            return
        tint = PALETTE[place % len(PALETTE)]
        figure.add_artist(
            Rectangle(
                (left + at / _WIDTH, bottom + 9 / height),
                11 / _WIDTH,
                3 / height,
                transform=figure.transFigure,
                facecolor=tint,
            )
        )
        figure.text(left + (at + 15) / _WIDTH, bottom + 11 / height, words, color=TEXT, fontsize=7.5, va="center")
        at += need


def _save(figure: Figure, path: Path) -> None:
    raw = io.BytesIO()
    figure.savefig(raw, format="png", facecolor=BACKGROUND)
    # Few colours are in it: a palette makes the file a third as large.
    picture = Image.open(io.BytesIO(raw.getvalue())).convert("RGB").quantize(160, dither=Image.Dither.NONE)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, optimize=True)
