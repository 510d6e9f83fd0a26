"""Against a real Grafana (GRAFANA_URL, GRAFANA_TOKEN), when somebody has one; never run where it was written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from inferdeck.grafana.compare import compare
from inferdeck.grafana.connection import connect, variables_of
from inferdeck.grafana.loading import push
from runbooks.notify.grafana_api import end_incident, mark, silence

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not os.environ.get("GRAFANA_URL"),
        reason="no GRAFANA_URL: name a Grafana to write to (GRAFANA_PROMETHEUS_URL: Prometheus as it sees it)",
    ),
]


def test_a_real_grafana_takes_everything_and_gives_it_back() -> None:
    """Dashboards, rules, contact points, templates, mute timings and policies; then nothing differs."""
    session = connect(seconds=30.0)
    prometheus = os.environ.get("GRAFANA_PROMETHEUS_URL", "http://prometheus:9090")
    push(session, ROOT, variables_of(), prometheus_url=prometheus, replace_policies=True)

    assert [] == [one for one in compare(session, ROOT, variables_of()) if one.state == "fail"]


def test_a_real_grafana_takes_annotations_and_silences() -> None:
    """An incident's mark gets its end, and a silence has an id."""
    session = connect(seconds=30.0)
    now = time.time()
    known = mark(session, "a test of inferdeck", ["inferdeck", "incident", "alert:InferdeckTest"], since=now - 60)

    assert "sent" == end_incident(session, "InferdeckTest", now).state
    found = session.ask(lambda api: api.annotations.find_annotations(tags=["alert:InferdeckTest"], limit=5))
    (ours,) = [one for one in found if one["id"] == known]
    assert round(now * 1000) == ours["timeEnd"]
    assert silence(session, "InferdeckTest", seconds=60, author="inferdeck", comment="a test", now=now)
    session.ask(lambda api: api.annotations.delete_annotations_by_id(known))
