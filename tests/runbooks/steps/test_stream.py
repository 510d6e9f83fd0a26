"""A reader that got slower, more that is sent, a burst that is read, and no stream at all are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runbooks import stream_queries
from runbooks.engine import triage
from runbooks.evidence import Evidence, Series, Window
from runbooks.sources import Sources
from runbooks.steps import stream
from tests.runbooks.steps.test_replayed import T0, Prometheus

TIMES = np.arange(T0 - 120.0, T0 + 90.1, 5.0)


def shown(before: float, during: float, sent: float, burst: float = 0.0) -> dict[str, tuple[Series, ...]]:
    """Return what a stream shows: messages done a second before and since T0, what is sent, and a burst at T0."""
    since = np.maximum(TIMES - T0, 0.0)
    waiting = np.maximum(np.where(TIMES < T0, 0.0, burst + (sent - during) * since), 0.0)
    # the age of the message at the head of what waits
    lag = np.where(waiting > 0, since * max(0.0, 1.0 - (during / sent if not burst else 0.0)), 0.0)
    done = before * (np.minimum(TIMES, T0) - TIMES[0]) + during * since
    zero = np.zeros_like(TIMES)
    return {
        stream_queries.WAITING: (Series({}, TIMES, waiting),),
        stream_queries.LAG: (Series({}, TIMES, lag),),
        stream_queries.MESSAGES: (Series({"result": "ok"}, TIMES, done), Series({"result": "duplicate"}, TIMES, zero)),
        stream_queries.WINDOWS: (Series({"result": "late"}, TIMES, np.floor(since / 60.0)),),
        stream_queries.STANDS: (Series({}, TIMES, zero),),
    }


def evidence_of(series: dict[str, tuple[Series, ...]] | None) -> Evidence:
    """Return the evidence of an incident from T0 on."""
    return Evidence(Window(T0 - 120.0, T0 + 90.0, T0, T0 + 90.0), series, None)


def values(series: dict[str, tuple[Series, ...]] | None) -> dict[str, Any]:
    """Return what each step measures."""
    return {name: getattr(stream, name)(evidence_of(series)).value for name in stream.__all__}


def test_a_reader_that_got_slower() -> None:
    """A fifth of before is done, as much is sent, and all that is not done waits."""
    found = values(shown(50, 10, 50))

    assert found["pace"] == pytest.approx(0.2, rel=0.1)
    assert found["arrivals"] == pytest.approx(1.0, rel=0.1)
    assert 1.0 == found["waiting_kept"]
    assert found["lag"] == pytest.approx(72.0)
    assert (1.0, 0.0) == (found["late_windows"], found["stands"])


def test_more_that_is_sent_than_a_reader_can_do() -> None:
    """It does more than before, and still falls behind."""
    found = values(shown(50, 100, 400))

    assert found["pace"] == pytest.approx(2.0, rel=0.1)
    assert found["arrivals"] == pytest.approx(8.0, rel=0.1)
    assert 1.0 == found["waiting_kept"]


def test_a_burst_that_is_read_becomes_less() -> None:
    """However late its messages are."""
    found = values(shown(50, 200, 50, burst=40_000))

    assert found["lag"] > 30
    assert found["waiting_kept"] < 0.98


@pytest.mark.parametrize("series", [None, {}], ids=["no Prometheus", "no stream"])
def test_a_stream_that_is_not_there_is_unseen(series: dict[str, tuple[Series, ...]] | None) -> None:
    """Not 0: most services have none."""
    assert {None} == set(values(series).values())


def test_a_burst_is_none_before_a_minute_of_it_is_known() -> None:
    """Half a minute after it came, what waits is less than the most that did."""
    evidence = evidence_of(shown(50, 200, 50, burst=40_000)).at(Window(T0 - 120.0, T0 + 45.0, T0 + 10.0, T0 + 45.0))

    assert (45.0, True) == (stream.lag(evidence).value, float(stream.waiting_kept(evidence).value or 0) < 0.98)


def test_what_was_last_seen_long_ago_says_nothing() -> None:
    """Its target is gone; then the target's own alert tells."""
    series = {
        name: tuple(Series(one.labels, one.times - 600, one.values) for one in all_)
        for name, all_ in shown(50, 10, 50).items()
    }

    assert (None, None, None) == tuple(values(series)[name] for name in ("lag", "waiting_kept", "stands"))


@pytest.mark.parametrize(
    ("series", "named"),
    [(shown(50, 10, 50), True), (shown(50, 200, 50, burst=40_000), False), (shown(50, 50, 50), False)],
    ids=["slower", "burst", "healthy"],
)
def test_blind_triage_names_the_reader_that_falls_behind_and_no_burst(
    series: dict[str, tuple[Series, ...]], named: bool
) -> None:
    """From metrics alone, told no more than the time."""
    found = triage(Sources(Prometheus(series), None), at=T0 + 90.0, clock=lambda: T0 + 91.0)  # type: ignore[arg-type]

    assert ("stream_lag" if named else None) == (found["verdict"] or {}).get("slug")
