"""Each rule of the lint was broken once on purpose."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dashboards.boards import overview
from dashboards.build import build_board, panels_of
from dashboards.catalogue import BOARDS
from dashboards.files import ROOT
from dashboards.lint import lint
from dashboards.references import recorded_series
from dashboards.thresholds import load_alerts

Document = dict[str, Any]
RECORDED = recorded_series(ROOT)
GOOD = build_board(overview.BOARD, load_alerts())


def panel_of(document: Document, title: str) -> dict[str, Any]:
    """Return a panel by its title."""
    return next(panel for panel in panels_of(document) if panel["title"] == title)


def a_panel(document: Document) -> dict[str, Any]:
    """Return some panel with lines."""
    return panel_of(document, "Traffic by route")


def variable(document: Document, name: str) -> dict[str, Any]:
    """Return a variable by its name."""
    return next(item for item in document["templating"]["list"] if item["name"] == name)


def put(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    """Return what sets a value deep inside."""

    def change(target: Any) -> None:
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return change


MUTATIONS: list[tuple[str, Callable[[Document], Any], str]] = [
    ("no uid", lambda d: d.update(uid=""), "has no uid"),
    ("uid too long", lambda d: d.update(uid="x" * 41), "has no uid"),
    ("no title", lambda d: d.update(title=""), "has no title"),
    ("editable", lambda d: d.update(editable=True), "can be edited"),
    ("no refresh", lambda d: d.pop("refresh"), "does not refresh"),
    ("same id", lambda d: a_panel(d).update(id=1), "bear the id 1"),
    ("no id", lambda d: a_panel(d).pop("id"), "has no id"),
    ("off the grid", lambda d: a_panel(d)["gridPos"].update(x=20), "leaves the grid"),
    ("overlap", lambda d: a_panel(d)["gridPos"].update(x=5), "lies over"),
    ("no place", lambda d: a_panel(d)["gridPos"].pop("w"), "has no place"),
    ("kind", lambda d: a_panel(d).update(type="timeserie"), "unknown kind 'timeserie'"),
    ("no title of a panel", lambda d: a_panel(d).update(title=" "), "has no title"),
    ("no description", lambda d: a_panel(d).pop("description"), "has no description"),
    ("no text for no data", lambda d: a_panel(d)["fieldConfig"]["defaults"].pop("noValue"), "what no data means"),
    ("unit", lambda d: put("fieldConfig", "defaults", "unit", value="seconds")(a_panel(d)), "unknown unit 'seconds'"),
    ("no unit", lambda d: a_panel(d)["fieldConfig"]["defaults"].pop("unit"), "unknown unit None"),
    ("no runbook", lambda d: a_panel(d).update(links=[]), "links to no runbook"),
    ("source", lambda d: a_panel(d)["datasource"].update(uid="prom"), "does not ask a data source"),
    ("source of a query", lambda d: put("targets", 0, "datasource", "uid", value="x")(a_panel(d)), "another source"),
    ("asks nothing", lambda d: a_panel(d).update(targets=[]), "asks nothing"),
    ("letters", lambda d: a_panel(d)["targets"].append(a_panel(d)["targets"][0]), "gives one letter to two"),
    ("metric", lambda d: put("targets", 0, "expr", value="modelrequests")(a_panel(d)), "is no metric"),
    ("syntax", lambda d: put("targets", 0, "expr", value="sum(")(a_panel(d)), "is no PromQL"),
    ("variable", lambda d: put("targets", 0, "expr", value='up{job="$jobs"}')(a_panel(d)), "uses $jobs"),
    ("idle variable", lambda d: variable(d, "route").update(name="routes"), "defines $routes"),
    ("asked once", lambda d: variable(d, "route").update(refresh=1), "not asked again"),
    ("All", lambda d: variable(d, "route").update(allValue=".+"), "leaves series without the label out"),
    ("source of a variable", lambda d: variable(d, "route")["datasource"].update(uid="x"), "$route does not ask"),
    ("annotation", put("annotations", "list", 1, "expr", value="upp"), "annotation 'Deploys': upp is no"),
    (
        "thresholds",
        lambda d: panel_of(d, "Burn of the error budget")["fieldConfig"]["defaults"]["thresholds"]["steps"].reverse(),
        "do not ascend",
    ),
    (
        "link",
        lambda d: put("links", 0, "url", value="http://example.org")(panel_of(d, "Event loop blocked")),
        "neither inside Grafana",
    ),
]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_shipped_dashboards_are_well(board: Any) -> None:
    """No rule has anything against them."""
    assert [] == lint(build_board(board, load_alerts()), RECORDED)


@pytest.mark.parametrize(("change", "said"), [item[1:] for item in MUTATIONS], ids=[item[0] for item in MUTATIONS])
def test_each_rule_sees_what_it_is_for(change: Callable[[Document], Any], said: str) -> None:
    """One thing is broken, and that thing is said."""
    broken = copy.deepcopy(GOOD)

    change(broken)

    assert any(said in what for what in lint(broken, RECORDED)), lint(broken, RECORDED)
