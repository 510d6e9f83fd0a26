"""A dump answers as Prometheus did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exporters.names import METRICS
from inferdeck.bundle.metrics import ALERTS, KeptMetrics, every_query
from runbooks.prometheus_source import SourceMissingError
from runbooks.signals import QUERIES


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of one metric and one alert."""
    path = tmp_path / "metrics.json"
    up = {"labels": {"job": "service"}, "times": [10.0, 15.0, 20.0], "values": [1.0, 0.0, 1.0]}
    alert = {"labels": {"alertname": "A"}, "times": [15.0, 20.0], "values": [1.0, 1.0]}
    path.write_text(json.dumps({"queries": {"up": [up], ALERTS: [alert]}}))
    return path


def test_series_are_cut_to_the_time(dump: Path) -> None:
    """A query that was not asked then has no series."""
    found = KeptMetrics(dump).collect(["up", "other"], 12.0, 20.0)

    assert () == found["other"]
    (series,) = found["up"]
    assert ({"job": "service"}, [15.0, 20.0], [0.0, 1.0]) == (
        dict(series.labels), series.times.tolist(), series.values.tolist()
    )  # fmt: skip


def test_an_alert_has_its_span(dump: Path) -> None:
    """Known alerts only."""
    kept = KeptMetrics(dump)

    assert (15.0, 20.0) == kept.alert_span("A", 0.0, 100.0)
    assert kept.alert_span("B", 0.0, 100.0) is None


@pytest.mark.parametrize("text", ["", "[]", '{"queries": []}', '{"queries": {"up": [{}]}}', "[" * 50_000])
def test_a_damaged_dump_is_a_missing_source(text: str, tmp_path: Path) -> None:
    """Never an error of triage."""
    (tmp_path / "m.json").write_text(text)

    for path in (tmp_path / "m.json", tmp_path / "none.json"):
        with pytest.raises(SourceMissingError):
            KeptMetrics(path).collect(["up"], 0.0, 1.0)


def test_everything_of_ours_is_asked_for() -> None:
    """What triage asks, and every metric of names.py by the names of its series, each once."""
    asked = every_query()

    assert set(QUERIES) <= set(asked)
    assert len(asked) == len(set(asked))
    for metric in METRICS.values():
        assert (f"{metric.name}_sum" if metric.kind == "histogram" else metric.name) in asked
