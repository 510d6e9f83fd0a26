"""Ask a real Prometheus everything that the dashboards ask: each query, variable and annotation must have an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.build import panels_of
from dashboards.choices import MARKS
from dashboards.macros import Moment, fill
from dashboards.prometheus_http import Prometheus, QueryError, Series
from dashboards.spec import Board

__all__ = ["Answer", "Question", "ask", "choices_of", "questions"]

_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_LABEL_VALUES = re.compile(r"label_values\((.+),\s*(\w+)\)")


@dataclass(frozen=True)
class Question:
    """One thing that a dashboard asks Prometheus.

    Attributes:
        where: Board and panel, variable or annotation.
        kind: query, exemplars, variable or annotation.
        text: As it stands in the dashboard, macros included.
        instant: Asked for the end of the time shown alone.
        labels: That the legend names, so that the answer must hold them.
        may_be_empty: Why there may be no answer; empty when there must be one.
    """

    where: str
    kind: str
    text: str
    instant: bool = False
    labels: tuple[str, ...] = ()
    may_be_empty: str = ""


@dataclass(frozen=True)
class Answer:
    """What came back: `state` is data, empty (with a reason that was known before), missing or refused."""

    question: Question
    state: str
    detail: str

    @property
    def wrong(self) -> bool:
        """Whether the dashboard would show less than it claims."""
        return self.state in {"missing", "refused"}


def questions(board: Board, document: Mapping[str, Any]) -> Iterator[Question]:
    """Yield everything that a dashboard asks Prometheus.

    Args:
        board: Says what may be empty, and why.
        document: Its JSON, whose queries are asked.
    """
    reasons = {variable.name: variable.may_be_empty for variable in board.variables}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            name = variable["name"]
            where = f"{board.uid} ${name}"
            yield Question(where, "variable", variable["query"]["query"], may_be_empty=reasons.get(name, ""))
    marks = {mark.name: mark.may_be_empty for mark in MARKS}
    for mark in document["annotations"]["list"]:
        if "expr" in mark:
            labels = tuple(_LABEL.findall(mark["titleFormat"]))
            yield Question(
                f"{board.uid} @{mark['name']}",
                "annotation",
                mark["expr"],
                labels=labels,
                may_be_empty=marks[mark["name"]],
            )
    panels = {panel.id: panel for panel in board.panels}
    for panel in panels_of(document):
        for number, target in enumerate(panel.get("targets", ())):
            if not target["datasource"]["uid"].endswith("datasource}"):
                continue
            known = panels[panel["id"]]
            where = f"{board.name}/{known.key} {target['refId']}"
            query = known.queries[number]
            labels = tuple(_LABEL.findall(target.get("legendFormat", "")))
            labels += tuple(name for name in known.columns if name != "Value")
            yield Question(where, "query", target["expr"], bool(target.get("instant")), labels, query.may_be_empty)
            if target.get("exemplar"):
                yield Question(where, "exemplars", target["expr"], may_be_empty=query.may_be_empty)


def choices_of(board: Board, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the variables of a board stand for, All being `.*`.

    Args:
        board: The board.
        chosen: Variables with other values.
    """
    return {variable.name: ".*" for variable in board.variables} | dict(chosen or {})


def ask(asked: Sequence[Question], prometheus: Prometheus, moment: Moment) -> list[Answer]:
    """Return the answer to each question.

    Args:
        asked: The questions.
        prometheus: The server.
        moment: What is on the screen.
    """
    return [_answer(question, prometheus, moment) for question in asked]


def _answer(question: Question, prometheus: Prometheus, moment: Moment) -> Answer:
    try:
        found, lacking = _look(question, prometheus, moment)
    except (QueryError, KeyError) as error:
        return Answer(question, "refused", f"{error!s:.300}")
    if found and not lacking:
        return Answer(question, "data", f"{found} {'values' if question.kind == 'variable' else 'series'}")
    if found:
        return Answer(question, "missing", f"labels that the legend names are not in the answer: {', '.join(lacking)}")
    if question.may_be_empty:
        return Answer(question, "empty", question.may_be_empty)
    return Answer(question, "missing", "no answer")


def _look(question: Question, prometheus: Prometheus, moment: Moment) -> tuple[int, list[str]]:
    """Return how many series hold a number, and which labels they lack."""
    if question.kind == "variable":
        match = _LABEL_VALUES.fullmatch(question.text)
        if match is None:
            raise KeyError(f"{question.text} is no label_values(metric, label)")
        return len(prometheus.label_values(match[2], fill(match[1], moment), moment.start, moment.end)), []
    expr = fill(question.text, moment)
    if question.kind == "exemplars":
        found = prometheus.exemplars(expr, moment.start, moment.end)
        return len(found), [] if all("trace_id" in item["labels"] for item in found) else ["trace_id"]
    if question.instant:
        series = prometheus.now(expr, moment.end)
    else:
        series = prometheus.over(expr, moment.start, moment.end, moment.step)
    real = [item for item in series if _has_number(item)]
    return len(real), sorted({label for label in question.labels for labels, _ in real if not labels.get(label)})


def _has_number(series: Series) -> bool:
    return any(math.isfinite(value) for _, value in series[1])
