"""Boards become the JSON that Grafana provisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dashboards.boards import overview, request_path, session
from dashboards.build import build_board, panels_of, to_text
from dashboards.catalogue import BOARDS
from dashboards.spec import Board
from dashboards.thresholds import AlertFacts, load_alerts

ALERTS = load_alerts()


def panel(board: Board, key: str, alerts: dict[str, AlertFacts] | None = None) -> dict[str, Any]:
    """Return a panel's JSON by its key."""
    identity = next(item.id for item in board.panels if item.key == key)
    document = build_board(board, ALERTS if alerts is None else alerts)
    return next(item for item in panels_of(document) if item["id"] == identity)


def test_objectives_are_the_catalogues_own_numbers() -> None:
    """A threshold is written in one place: here it is drawn."""
    found = panel(overview.BOARD, "latency")["fieldConfig"]["defaults"]

    known = ALERTS["latency_objective"].thresholds
    expected = [None, known["short_seconds"], known["medium_seconds"], known["long_seconds"]]
    assert expected == [step["value"] for step in found["thresholds"]["steps"]]
    assert "dashed" == found["custom"]["thresholdsStyle"]["mode"]


def test_a_panel_links_to_the_runbooks_of_the_alerts_that_lead_to_it() -> None:
    """The catalogue's `panel:` is enough; the board need not name the alert again. Boards that tell more come first."""
    alerts = {"queue_wait": AlertFacts("QueueWait", "request-path/queue-wait", {"seconds": 0.06})}

    links = panel(request_path.BOARD, "queue-wait", alerts)["links"]

    more = "/d/inferdeck-serving?${__url_time_range}&${__all_variables}"
    assert [more, "${triage_url}/runbooks/QueueWait.md"] == [link["url"] for link in links]


def test_a_panel_that_no_alert_is_about_leads_to_the_symptom_of_its_board() -> None:
    """Whoever finds it strange has a page to go on with."""
    links = panel(overview.BOARD, "traffic-now")["links"]

    assert "${triage_url}/runbooks/LatencyObjectiveMissed.md" == links[-1]["url"]


def test_an_alert_that_the_catalogue_does_not_hold_gets_neither_link_nor_line() -> None:
    """No dead link, and no line from a number that nobody wrote."""
    found = panel(overview.BOARD, "latency", {})

    assert [] == found["links"]
    assert [None] == [step["value"] for step in found["fieldConfig"]["defaults"]["thresholds"]["steps"]]


def test_a_threshold_that_the_catalogue_does_not_hold_is_an_error() -> None:
    """A misspelt name must not be a missing line."""
    with pytest.raises(KeyError, match="short_seconds"):
        build_board(overview.BOARD, {"latency_objective": AlertFacts("LatencyObjectiveMissed", "", {})})


def test_exemplars_are_asked_for_where_a_trace_can_be_opened() -> None:
    """On both panels of whole answers."""
    assert panel(overview.BOARD, "latency")["targets"][0]["exemplar"]
    assert panel(request_path.BOARD, "latency-heatmap")["targets"][0]["exemplar"]


def test_sessions_are_looked_up_in_jaeger_by_the_spans_own_attribute() -> None:
    """The search that Jaeger answers by tags, and the waterfall of one trace."""
    search = panel(session.BOARD, "requests")["targets"][0]
    one = panel(session.BOARD, "waterfall")

    assert ("search", 'session_id="${session_id}"', "${traced_service}") == (
        search["queryType"],
        search["tags"],
        search["service"],
    )
    assert ("traces", "${trace_id}") == (one["type"], one["targets"][0]["query"])


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_librarys_own_reader_knows_every_key(board: Board) -> None:
    """Read and written again by the library it is the same: no key is unknown to it, those of queries included."""
    from dashboards.grafana_sdk import encoder, models, plugins

    plugins.register_default_plugins()
    document = build_board(board, ALERTS)

    again = json.loads(encoder.JSONEncoder(sort_keys=True).encode(models.Dashboard.from_json(document)))

    assert to_text(_known(document)) == to_text(_known(again))


def _known(document: dict[str, Any]) -> dict[str, Any]:
    """Return the dashboard without what the library adds to every dashboard and `build` takes away again."""
    document = json.loads(json.dumps(document))
    for item in (*document["annotations"]["list"], *document["links"]):
        item.pop("placement", None)
    for variable in document["templating"]["list"]:
        for key in ("auto", "auto_min", "auto_count"):
            variable.pop(key, None)
    for item in panels_of(document):
        item["options"].pop("footer", None) if item["type"] == "table" else None
        for link in item.get("links", ()):
            link.pop("placement", None)
    return document
