"""What a panel shows: its queries' answers, named as its legend says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.macros import Moment, fill
from dashboards.prometheus_http import Prometheus

__all__ = ["Around", "Frame", "MarkAt", "ask_panel", "exemplars_of", "marks_at"]

_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True)
class Frame:
    """One series: its name in the legend, its labels, and its samples as (seconds since 1970, value)."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        """The newest value."""
        return self.points[-1][1]


@dataclass(frozen=True)
class MarkAt:
    """An event on the axis of time: when it began, and in which colour it is drawn."""

    at: float
    colour: str


@dataclass(frozen=True)
class Around:
    """What a panel with an axis of time shows besides its series.

    Attributes:
        exemplars: Requests whose trace can be opened, as (seconds since 1970, value).
        marks: Events.
        start: Begin of the time shown.
        end: Its end.
    """

    exemplars: Sequence[tuple[float, float]]
    marks: Sequence[MarkAt]
    start: float
    end: float


def ask_panel(panel: Mapping[str, Any], prometheus: Prometheus, moment: Moment) -> list[Frame]:
    """Return a panel's series, sorted by the order of its queries and then by name.

    Args:
        panel: Its JSON.
        prometheus: The server.
        moment: What is on the screen.

    Raises:
        QueryError: When one cannot be had.
    """
    found: list[Frame] = []
    for target in panel.get("targets", ()):
        if "expr" not in target:
            continue
        expr = fill(target["expr"], moment)
        if target.get("instant"):
            series = prometheus.now(expr, moment.end)
        else:
            series = prometheus.over(expr, moment.start, moment.end, moment.step)
        legend = target.get("legendFormat", "")
        frames = [Frame(_named(legend, labels), labels, points) for labels, points in series]
        # What is asked for one moment comes in an order that the query chose.
        frames = frames if target.get("instant") else sorted(frames, key=lambda frame: frame.name)
        found += [frame for frame in frames if any(math.isfinite(value) for _, value in frame.points)]
    return found


def _named(legend: str, labels: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda match: labels.get(match[1], ""), legend)


def exemplars_of(panel: Mapping[str, Any], prometheus: Prometheus, moment: Moment) -> list[tuple[float, float]]:
    """Return the exemplars of a panel as (seconds since 1970, value).

    Raises:
        QueryError: When they cannot be had.
    """
    return [
        (float(item["timestamp"]), float(item["value"]))
        for target in panel.get("targets", ())
        if target.get("exemplar")
        for item in prometheus.exemplars(fill(target["expr"], moment), moment.start, moment.end)
    ]


def marks_at(document: Mapping[str, Any], prometheus: Prometheus, moment: Moment) -> list[MarkAt]:
    """Return when the events of a dashboard's annotations began.

    Args:
        document: Its JSON.
        prometheus: The server.
        moment: What is on the screen.

    Raises:
        QueryError: When they cannot be had.
    """
    found = []
    for mark in document["annotations"]["list"]:
        if "expr" not in mark:
            continue
        for _, points in prometheus.over(fill(mark["expr"], moment), moment.start, moment.end, moment.step):
            times = [at for at, _ in points]
            begins = [
                at for at, before in zip(times, [float("-inf"), *times], strict=False) if at - before > 2 * moment.step
            ]
            found += [MarkAt(at, mark["iconColor"]) for at in begins]
    return found
