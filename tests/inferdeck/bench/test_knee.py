"""The knee is where power is largest; the limit is written and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from inferdeck.bench.knee import Step, draw_knee, find_knee, plot_knee, run_knee, write_limit
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from inferdeck.version import ROOT

SCHEMA = ROOT / "inferdeck" / "schemas" / "bench_knee.schema.json"


def steps(*figures: tuple[int, float, float]) -> list[Step]:
    """Return steps of connections, requests a second and P95 in seconds."""
    return [Step(connections, rps, p95_s / 2, p95_s, 0) for connections, rps, p95_s in figures]


def test_knee_is_before_times_grow_and_answers_do_not() -> None:
    """Twice the answers in the same time are worth it, a few more in twice the time are not."""
    found = find_knee(steps((1, 400, 0.0025), (2, 800, 0.0026), (4, 1000, 0.005), (8, 1050, 0.012)))

    assert found.connections == 2


def test_nothing_answered_is_no_knee() -> None:
    """A service that is down has none."""
    with pytest.raises(CannotRun, match="nothing was answered"):
        find_knee(steps((1, 0.0, 0.0)))
    with pytest.raises(CannotRun, match="nothing was answered"):
        find_knee([])


def test_limit_is_written_over_the_old_one_and_beside_all_else(tmp_path: Path) -> None:
    """A profile keeps its comments and other settings; a file without the setting gets it at its end."""
    profile = tmp_path / "prod.yaml"
    profile.write_text("workers: 2  # two\nknee_rps: 0      # none yet\nhost: x")
    write_limit(profile, 812.6)
    assert {"workers": 2, "knee_rps": 813, "host": "x"} == yaml.safe_load(profile.read_text())
    assert "# none yet" in profile.read_text()

    profile.write_text("workers: 2")
    write_limit(profile, 99.5)
    write_limit(profile, 120.0)
    assert profile.read_text() == "workers: 2\nknee_rps: 120\n"

    with pytest.raises(CannotRun):
        write_limit(tmp_path / "nowhere" / "prod.yaml", 1.0)


@pytest.fixture(scope="module")
def model() -> Path:
    """Return the checkout's model, trained first when there is none."""
    from service.training.ensure import ensure_model

    folder = ROOT / "build" / "model"
    ensure_model(folder, lambda _what, _share: None)
    return folder


@pytest.mark.real
def test_real_run_has_its_shape_and_its_plot(model: Path, tmp_path: Path) -> None:
    """One round of a second for each step."""
    said: list[str] = []

    class Paper:
        def print(self, line: str) -> None:
            said.append(line)

    result: dict[str, Any] = run_knee(model, 1, 1.0, lambda _word, _share: None)
    plot_knee(result, tmp_path / "knee.svg")
    draw_knee(result, Paper())  # type: ignore[arg-type]

    jsonschema.validate(Stopwatch().stamp(result), json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert result["knee_rps"] > 0
    assert "<svg" in (tmp_path / "knee.svg").read_text(encoding="utf-8")
    assert 1 == sum("<- knee" in line for line in said)
