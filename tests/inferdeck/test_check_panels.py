"""Tests of inferdeck/check_panels.py: a panel without data in a running Prometheus is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dashboards.build import build_board
from dashboards.catalogue import BOARDS
from dashboards.live import questions
from dashboards.thresholds import load_alerts
from inferdeck.check_panels import check_panels
from tests.dashboards.fake_prometheus import matrix, serving, vector

# Every label that a legend names, so that an answer lacks none.
LABELS = {
    label: "x"
    for board in BOARDS
    for question in questions(board, build_board(board, load_alerts()))
    for label in question.labels
}


def answering(lost: Callable[[str], bool]) -> Callable[[str, Mapping[str, str]], tuple[int, Any]]:
    """Return a Prometheus that has all that is asked, but for what is lost."""

    def answer(path: str, parameters: Mapping[str, str]) -> tuple[int, Any]:
        gone = lost(parameters.get("query") or parameters.get("match[]") or "")
        if path.startswith("label/"):
            return 200, [] if gone else ["x"]
        if path == "query_exemplars":
            return 200, [] if gone else [{"exemplars": [{"labels": {"trace_id": "f"}, "value": "1"}]}]
        instant = path == "query"
        series = vector(LABELS, 1.0) if instant else matrix(LABELS, [1.0, 2.0])
        return 200, {"resultType": "vector" if instant else "matrix", "result": [] if gone else [series]}

    return answer


def test_boards_that_are_answered_are_well() -> None:
    """Each query, variable, annotation and exemplar of each board is asked."""
    with serving(answering(lambda _query: False)) as url:
        found = list(check_panels(url, 15.0, clock=lambda: 1900.0))

    assert ["ok"] == [one.state for one in found], [one.detail for one in found]
    assert int(found[0].detail.split()[0]) > 150


def test_a_metric_that_is_gone_is_told_with_its_panel_and_query() -> None:
    """Whoever renamed it sees which panel lost its data."""
    with serving(answering(lambda query: "model_stage_seconds" in query)) as url:
        found = list(check_panels(url, 15.0, clock=lambda: 1900.0))

    assert {"fail"} == {one.state for one in found}
    assert all("model_stage_seconds" in one.detail for one in found)
    assert any(one.detail.startswith("request-path/") and "no answer" in one.detail for one in found)


def test_a_prometheus_that_is_not_there_is_one_finding() -> None:
    """And not one for each of hundreds of questions."""
    with serving(answering(lambda _query: False)) as url:
        pass
    (found,) = check_panels(url, 15.0)

    assert ("fail", True) == (found.state, "does not answer" in found.detail)
