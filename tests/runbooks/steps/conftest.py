"""Requests made by hand: two minutes of health, then a minute in which a rule changes some of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, Window
from runbooks.rows import OUTCOMES, RingLife, Rows, bucket_of

T0 = 1_780_000_000.0
STAGES = ("network.receive", "sentiment.preprocess", "scheduler.dispatch", "network.send")
KINDS = (("web", "chrome"), ("mobile", "safari_ios"), ("app", "other"))
RELEASES = ("4.1.0", "4.2.0", "4.2.1")

Change = Callable[[dict[str, Any], random.Random], None]


def make_rows(
    change: Change | None = None,
    *,
    before: float = 120.0,
    during: float = 60.0,
    rate: float = 20.0,
    seed: int = 1,
    measures_cpu: bool = True,
    stages: tuple[str, ...] = STAGES,
) -> Rows:
    """Return requests; `change` alters those of the incident, by the keys set below."""
    rng = random.Random(seed)
    found: list[dict[str, Any]] = []
    at = T0 - before
    while (at := at + rng.expovariate(rate)) < T0 + during:
        device, family = rng.choice(KINDS)
        one: dict[str, Any] = {
            "start": at,
            "filter": 0.0002 * rng.lognormvariate(0, 0.3),
            "middleware": 0.0001,
            "cpu_share": 0.95,
            "body": rng.choice((0.0, 0.0, 0.01)),
            "device": device,
            "family": family,
            "release": rng.choice(RELEASES),
            "outcome": "ok",
            "reason": "",
            "field": "",
            "crowded": False,
        }
        if change and at >= T0:
            change(one, rng)
        found.append(one)
    return _rows(found, measures_cpu, stages)


def _rows(found: list[dict[str, Any]], measures_cpu: bool, stages: tuple[str, ...]) -> Rows:
    def get(name: str) -> Any:
        return np.array([float(one[name]) for one in found])

    def text(name: str) -> Any:
        return np.array([*(one[name] for one in found), None], dtype=object)[:-1]

    count = len(found)
    body, filtered, middleware = get("body"), get("filter"), get("middleware")
    handed = np.where(text("reason") == "", middleware + body + filtered, np.nan)
    times = {
        "network.receive": (middleware, body),
        "sentiment.preprocess": (middleware + body, filtered),
        "scheduler.dispatch": (handed, np.where(np.isnan(handed), np.nan, 0.003)),
        "network.send": (middleware + body + filtered + 0.003, np.full(count, 0.0001)),
    }
    duration = middleware + body + filtered + 0.0032
    start = get("start")
    crowded = np.array([bool(one["crowded"]) for one in found], dtype=bool)
    return Rows(
        start_s=start,
        duration_s=duration,
        outcome=np.array([OUTCOMES.index(one["outcome"]) for one in found], dtype=np.int64),
        bucket=bucket_of(np.full(count, 40, dtype=np.int64)),
        session=np.arange(count, dtype=np.uint64) % 50,
        trace_id=np.array([f"{index:032x}" for index in range(count)], dtype=object),
        ring=np.full(count, "ring0", dtype=object),
        labels={
            "device_type": text("device"),
            "agent_family": text("family"),
            "client_release": text("release"),
            "reason": text("reason"),
            "request/refused_field": text("field"),
        },
        stages={name: times[name] for name in stages},
        parents=dict.fromkeys(stages, ""),
        cpu_s={"sentiment.preprocess": filtered * get("cpu_share")} if measures_cpu else {},
        refused_texts={"request/place": crowded} if crowded.any() else {},
        rings=(RingLife("ring0", "0", True, float(start[0]) if count else T0, T0 + 60.0),),
    )


def evidence_of(rows: Rows | None, series: dict[str, tuple[Series, ...]] | None = None) -> Evidence:
    """Return the evidence of an incident that began at T0 and goes on for a minute."""
    return Evidence(Window(T0 - 120.0, T0 + 60.0, T0, T0 + 60.0), series, rows)


def counter(labels: dict[str, str], before: float, during: float) -> Series:
    """Return a counter that grows by so much a second before T0 and after it, scraped every 5 s."""
    times = np.arange(T0 - 120.0, T0 + 60.1, 5.0)
    return Series(labels, times, before * (times - times[0]) + (during - before) * np.maximum(times - T0, 0.0))


@pytest.fixture
def requests() -> Callable[..., Rows]:
    """Return a maker of requests: `requests(change, rate=20.0)`."""
    return make_rows


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    """Return a maker of evidence: `evidence(rows, series)`."""
    return evidence_of


@pytest.fixture
def growing() -> Callable[..., Series]:
    """Return a maker of counters: `growing({"reason": "schema"}, 0.0, 3.0)`."""
    return counter
