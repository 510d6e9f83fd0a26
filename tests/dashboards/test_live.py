"""Answers are judged: what is empty, refused, or lacks a label that the legend names is not called well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dashboards.boards import overview
from dashboards.build import build_board
from dashboards.catalogue import BOARDS
from dashboards.live import Question, ask, choices_of, questions
from dashboards.macros import Moment
from dashboards.prometheus_http import Prometheus, QueryError
from dashboards.thresholds import load_alerts
from tests.dashboards.fake_prometheus import matrix, serving, vector

MOMENT = Moment(1000.0, 1060.0)


@pytest.mark.parametrize(
    ("question", "data", "state"),
    [
        (Question("p", "query", "a", labels=("x",)), [matrix({"x": "1"}, [1.0])], "data"),
        (Question("p", "query", "a", instant=True), [vector({}, 2.0)], "data"),
        (Question("p", "query", "a"), [], "missing"),
        (Question("p", "query", "a", may_be_empty="why"), [], "empty"),
        (Question("p", "query", "a"), [matrix({}, [float("nan")])], "missing"),
        (Question("p", "query", "a", labels=("x",)), [matrix({"y": "1"}, [1.0])], "missing"),
        (Question("p", "exemplars", "a"), [{"exemplars": [{"labels": {"trace_id": "f"}, "value": "1"}]}], "data"),
        (Question("p", "exemplars", "a"), [{"exemplars": [{"labels": {"traceID": "f"}, "value": "1"}]}], "missing"),
        (Question("p", "variable", "label_values(a, x)"), ["v"], "data"),
        (Question("p", "variable", "label_values(a, x)"), [], "missing"),
        (Question("p", "variable", "metrics(a)"), ["v"], "refused"),
        (Question("p", "query", "a{b=~'$nobody'}"), [matrix({}, [1.0])], "refused"),
    ],
)
def test_each_answer_is_judged(question: Question, data: Any, state: str) -> None:
    """Data, empty for a reason, missing, or refused."""

    def answer(path: str, _parameters: Mapping[str, str]) -> tuple[int, Any]:
        result = {"resultType": "vector" if path == "query" else "matrix", "result": data}
        return 200, result if path in {"query", "query_range"} else data

    with serving(answer) as url:
        [found] = ask([question], Prometheus(url), MOMENT)

    assert state == found.state
    assert (state in {"missing", "refused"}) == found.wrong


def test_a_refusal_is_told_in_one_line() -> None:
    """With the query and the server's own words."""
    with serving(lambda _path, _parameters: (400, "parse error")) as url:
        [found] = ask([Question("p", "query", "a b")], Prometheus(url), MOMENT)

        assert "refused" == found.state
        assert f"{url} refuses a b: parse error" == found.detail


def test_a_server_that_is_not_there_is_told() -> None:
    """Nothing listens on the port any more."""
    with serving(lambda _path, _parameters: (200, [])) as url:
        pass

    with pytest.raises(QueryError, match="does not answer"):
        Prometheus(url).now("up", 0.0)


def test_an_answer_that_is_no_prometheus_is_told() -> None:
    """Some other server on the port."""
    with serving(lambda _path, _parameters: (200, None)) as url, pytest.raises(QueryError, match="does not answer"):
        Prometheus(f"{url}/no such place\n").now("up", 0.0)


def test_everything_on_a_board_is_asked() -> None:
    """Each query of each panel, each variable with values, each annotation, and exemplars apart."""
    for board in BOARDS:
        document = build_board(board, load_alerts())
        asked = list(questions(board, document))
        queries = [query for panel in board.panels for query in panel.queries if panel.source == "prometheus"]
        assert len(queries) == sum(item.kind == "query" for item in asked)
        assert sum(query.exemplars for query in queries) == sum(item.kind == "exemplars" for item in asked)
        assert sum(bool(variable.metric) for variable in board.variables) == sum(
            item.kind == "variable" for item in asked
        )


def test_all_is_everything() -> None:
    """Unless something is chosen."""
    assert {"service": ".*", "route": "/a", "input_bucket": ".*"} == choices_of(overview.BOARD, {"route": "/a"})
