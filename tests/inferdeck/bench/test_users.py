"""Users by locust: what a level is judged by, and one short real run."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inferdeck.bench.users import run_users, shape_level
from inferdeck.result import Stopwatch
from inferdeck.version import ROOT

SCHEMA = ROOT / "inferdeck" / "schemas" / "bench_users.schema.json"


def told(times: dict[str, int], failures: int = 0) -> list[dict[str, Any]]:
    """Return locust's statistics of one kind of request, over ten seconds."""
    return [
        {
            "num_requests": sum(times.values()),
            "num_failures": failures,
            "response_times": times,
            "start_time": 100.0,
            "last_request_timestamp": 110.0,
        }
    ]


def test_level_adds_up_all_kinds_of_requests() -> None:
    """Percentiles are of all requests together, not an average of percentiles."""
    level = shape_level(10, told({"10": 90}) + told({"20": 9, "200": 1}), 1_000_000, 2_000_000)

    assert (level["requests"], level["rps"]) == (100, 10.0)
    assert (level["p50_s"], level["p95_s"], level["p99_s"]) == (0.01, 0.02, 0.02)
    assert (level["growth_bytes"], level["passed"]) == (1_000_000, True)


@pytest.mark.parametrize(
    ("statistics", "growth"),
    [
        pytest.param(told({"10": 100}, failures=1), 0, id="a failure"),
        pytest.param(told({"10": 90, "400": 10}), 0, id="slow"),
        pytest.param(told({"10": 100}), 64 << 20, id="memory grows"),
        pytest.param([], 0, id="nothing was asked"),
    ],
)
def test_level_that_misses_says_so(statistics: list[dict[str, Any]], growth: int) -> None:
    """Each alone is a miss."""
    assert not shape_level(10, statistics, 0, growth)["passed"]


@pytest.fixture(scope="module")
def model() -> Path:
    """Return the checkout's model, trained first when there is none."""
    from service.training.ensure import ensure_model

    folder = ROOT / "build" / "model"
    ensure_model(folder, lambda _what, _share: None)
    return folder


@pytest.mark.real
def test_real_users_are_answered(model: Path) -> None:
    """Five users for three seconds: requests, no failure."""
    # Not importorskip: to import locust replaces sockets and threads of the whole process.
    if find_spec("locust") is None and os.environ.get("CI") != "true":
        pytest.skip("locust is missing: pip install '.[load]'")
    result = run_users(model, 3.0, lambda _word, _share: None, users=(5,))

    jsonschema.validate(Stopwatch().stamp(result), json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert result["levels"][0]["requests"] > 5
    assert result["levels"][0]["errors"] == 0
