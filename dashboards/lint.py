"""What can be said against one dashboard's JSON by itself; each rule is born from something that Grafana lets pass."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from dashboards.build import panels_of
from dashboards.layout import COLUMNS
from dashboards.macros import Moment, fill, variables_in
from dashboards.promql import problems
from dashboards.units import UNITS

__all__ = ["PANEL_TYPES", "lint"]

PANEL_TYPES: Final = frozenset(
    {"timeseries", "stat", "bargauge", "heatmap", "state-timeline", "table", "text", "traces", "row"}
)
_SOURCES: Final = frozenset({"${datasource}", "${traces}"})
_UID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
# A link opens in Grafana itself, or begins with an address that is a variable.
_LINKS: Final = re.compile(r"^(/|\$\{triage_url\}/)")


def lint(document: Mapping[str, Any], recorded: Collection[str] = ()) -> list[str]:
    """Return what is wrong with a dashboard, one sentence each, the place first.

    Args:
        document: Its JSON.
        recorded: Names of recorded series.
    """
    return [
        f"{document.get('uid', 'without uid')}: {what}"
        for rule in (_whole, _identities, _grid, _panels, _variables)
        for what in rule(document)
    ] + [f"{document.get('uid', 'without uid')}: {what}" for what in _queries(document, recorded)]


def _whole(document: Mapping[str, Any]) -> Iterator[str]:
    if not _UID.fullmatch(str(document.get("uid") or "")):
        yield "has no uid of 1 to 40 letters, digits, - or _"
    if not document.get("title"):
        yield "has no title"
    if document.get("editable", True):
        yield "can be edited: what is changed in Grafana is lost with the next file"
    if not document.get("refresh"):
        yield "does not refresh by itself"


def _identities(document: Mapping[str, Any]) -> Iterator[str]:
    ids = [panel.get("id") for panel in document["panels"]]
    for identity in sorted({str(value) for value in ids if ids.count(value) > 1}):
        yield f"two panels bear the id {identity}"
    if not all(isinstance(value, int) and value > 0 for value in ids):
        yield "a panel has no id: alerts and links could not name it"


def _grid(document: Mapping[str, Any]) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for panel in document["panels"]:
        place, name = panel.get("gridPos") or {}, str(panel.get("title"))
        if not all(isinstance(place.get(key), int) for key in "xywh"):
            yield f"{name!r} has no place"
            continue
        if place["x"] < 0 or place["w"] < 1 or place["x"] + place["w"] > COLUMNS or place["h"] < 1:
            yield f"{name!r} leaves the grid of {COLUMNS} columns"
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        for other in sorted({taken[cell] for cell in cells if cell in taken}):
            yield f"{name!r} lies over {other!r}"
        taken |= dict.fromkeys(cells, name)


def _panels(document: Mapping[str, Any]) -> Iterator[str]:
    for panel in document["panels"]:
        if panel.get("type") not in PANEL_TYPES:
            yield f"{panel.get('title')!r} is of the unknown kind {panel.get('type')!r}"
    for panel in panels_of(document):
        name = repr(panel.get("title"))
        defaults = panel.get("fieldConfig", {}).get("defaults", {})
        yield from (f"{name} has no {key}" for key in ("title", "description") if not str(panel.get(key) or "").strip())
        if not defaults.get("noValue"):
            yield f"{name} does not say what no data means"
        if (panel.get("datasource") or {}).get("uid") not in _SOURCES:
            yield f"{name} does not ask a data source of the board's variables"
        if panel.get("type") != "text" and defaults.get("unit") not in UNITS:
            yield f"{name} has the unknown unit {defaults.get('unit')!r}"
        steps = [step["value"] for step in defaults.get("thresholds", {}).get("steps", [])]
        if steps[:1] not in ([], [None]) or steps[1:] != sorted(steps[1:]):
            yield f"{name} has thresholds that do not ascend from minus infinity"
        if not any("/runbooks/" in link["url"] for link in panel.get("links", ())):
            yield f"{name} links to no runbook"
        for link in panel.get("links", ()):
            if not _LINKS.match(link["url"]):
                yield f"{name} links to {link['url']}: neither inside Grafana nor below a variable"


def _variables(document: Mapping[str, Any]) -> Iterator[str]:
    listed = document["templating"]["list"]
    defined = {variable["name"] for variable in listed}
    parts = {
        "panels": document["panels"],
        "annotations": document["annotations"],
        "links": document["links"],
        "variables": [{key: value for key, value in item.items() if key != "name"} for item in listed],
    }
    used = {name for part in parts.values() for text in _texts(part) for name in variables_in(text)}
    yield from (f"uses ${name}, which is not defined" for name in sorted(used - defined))
    yield from (f"defines ${name}, which nothing uses" for name in sorted(defined - used))
    for variable in listed:
        if variable["type"] != "query":
            continue
        name = variable["name"]
        if (variable.get("datasource") or {}).get("uid") not in _SOURCES:
            yield f"${name} does not ask a data source of the board's variables"
        if variable.get("refresh") != 2:
            yield f"${name} is not asked again when the time changes"
        if variable.get("includeAll") and variable.get("allValue") != ".*":
            yield f"${name} has an All that leaves series without the label out: let it be .*"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _queries(document: Mapping[str, Any], recorded: Collection[str]) -> Iterator[str]:
    moment = Moment(0, 3600, choices={variable["name"]: ".*" for variable in document["templating"]["list"]})
    asked = [
        (f"annotation {item['name']!r}", item["expr"]) for item in document["annotations"]["list"] if "expr" in item
    ]
    for panel in panels_of(document):
        name, targets = repr(panel.get("title")), panel.get("targets", ())
        if not targets and panel.get("type") != "text":
            yield f"{name} asks nothing"
        letters = [target.get("refId") for target in targets]
        if len(set(letters)) != len(letters):
            yield f"{name} gives one letter to two queries"
        for target in targets:
            if target.get("datasource") != panel.get("datasource"):
                yield f"{name} asks another source than it says"
            if "expr" in target:
                asked.append((name, target["expr"]))
    for name, expr in asked:
        try:
            filled = fill(expr, moment)
        except KeyError:
            continue  # said above: a variable that is not defined
        yield from (f"{name}: {what}" for what in problems(filled, recorded))
