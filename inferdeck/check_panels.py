"""Whether a running Prometheus answers everything that the dashboards ask: what a board shows must be there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inferdeck.checks import Check
from inferdeck.version import ROOT

__all__ = ["check_panels"]

_NAME = "dashboards: data"
# As many points as a panel of usual width has; Prometheus refuses over 11,000.
_POINTS = 240


def check_panels(
    url: str, minutes: float, root: Path = ROOT, clock: Callable[[], float] = time.time, scrape_seconds: float = 5.0
) -> Iterator[Check]:
    """Yield one finding for each question without an answer, or that all have one.

    What a board itself says may be empty (a program that is not there, a failure that has not happened) is no finding.

    Args:
        url: Prometheus' address.
        minutes: How much time is looked at; the service must have had traffic in it.
        root: The checkout, with the catalogue.
        clock: Unix seconds.
        scrape_seconds: Between two scrapes.
    """
    try:
        from dashboards.build import build_board
        from dashboards.catalogue import BOARDS
        from dashboards.live import Answer, ask, choices_of, questions
        from dashboards.macros import Moment
        from dashboards.prometheus_http import Prometheus, QueryError
        from dashboards.thresholds import load_alerts
    except ImportError as error:
        yield Check(_NAME, "absent", f"cannot be judged here: {error}", "pip install '.[dashboards]'")
        return
    prometheus, now = Prometheus(url), clock()
    start, step = now - 60.0 * minutes, max(scrape_seconds, 60.0 * minutes // _POINTS)
    try:
        prometheus.now("vector(1)", now)
    except QueryError as error:
        yield Check(
            _NAME, "fail", str(error), "give the address of a Prometheus that runs; `inferdeck status` shows ours"
        )
        return
    alerts, answers = load_alerts(root / "alerts" / "catalogue"), list[Answer]()
    for board in BOARDS:
        moment = Moment(start, now, step, scrape_seconds, choices_of(board))
        answers += ask(list(questions(board, build_board(board, alerts))), prometheus, moment)
    wrong = dict.fromkeys(f"{one.question.where}: {one.detail} ({one.question.text})" for one in answers if one.wrong)
    if not wrong:
        empty = sum(one.state == "empty" for one in answers)
        detail = (
            f"{len(answers)} questions of {len(BOARDS)} dashboards, {empty} empty for a reason that the board tells"
        )
        yield Check(_NAME, "ok", detail)
    for what in wrong:
        yield Check(_NAME, "fail", what, "send traffic and ask again; else mend the query, or say `may_be_empty`")
