"""Tests of alerts/prometheus_config.py, judged by the real promtool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.prometheus_config import JOBS, Scrape, render_prometheus, seconds
from alerts.promtool import run_tool
from alerts.yaml_text import parse
from exporters.names_kubernetes import KUBERNETES_JOB

RULES = sorted((Path(__file__).resolve().parents[2] / "alerts" / "rules").glob("*.yml"))
SCRAPES = [
    Scrape("service", "127.0.0.1:8081"),
    Scrape("inferdeck-exporter", "127.0.0.1:9464"),
    Scrape("triage", "127.0.0.1:9465"),
    Scrape("prometheus", "127.0.0.1:19090"),
    Scrape("triton", "127.0.0.1:8002"),
    Scrape("triton-supervisor", "127.0.0.1:8003"),
    Scrape("stream", "127.0.0.1:9467"),
]


@pytest.mark.usefixtures("tools")
def test_promtool_accepts_the_configuration_and_its_rules(tmp_path: Path) -> None:
    """The stack's configuration is valid, and every shipped rule is loaded by it."""
    path = tmp_path / "prometheus.yml"
    path.write_text(render_prometheus(SCRAPES, "127.0.0.1:19093", RULES, 5), encoding="utf-8")

    done = run_tool("promtool", ["check", "config", path])

    assert (0, len(RULES)) == (done.rc, len(re.findall(r"SUCCESS: \d+ rules found", done.output))), done.output


@pytest.mark.usefixtures("tools")
def test_promtool_notices_a_rule_file_that_is_missing(tmp_path: Path) -> None:
    """A wrong path fails the check: promtool does look."""
    path = tmp_path / "prometheus.yml"
    path.write_text(render_prometheus(SCRAPES, "127.0.0.1:19093", [tmp_path / "none.yml"], 5), encoding="utf-8")

    assert 1 == run_tool("promtool", ["check", "config", path]).rc


def test_targets_and_intervals_are_where_prometheus_reads_them() -> None:
    """Each job has its targets and labels; scrapes and rules have one rhythm, and a late answer is a failed scrape."""
    scrapes = [*SCRAPES, Scrape("service", "10.0.0.2:8081", labels={"service": "other"})]
    document, _ = parse(render_prometheus(scrapes, "127.0.0.1:19093", ["a.yml"], 0.5))

    assert list(JOBS) == [job["job_name"] for job in document["scrape_configs"]]
    assert [
        {"targets": ["127.0.0.1:8081"]},
        {"targets": ["10.0.0.2:8081"], "labels": {"service": "other"}},
    ] == document["scrape_configs"][0]["static_configs"]
    assert {
        "scrape_interval": "500ms",
        "scrape_timeout": "500ms",
        "evaluation_interval": "500ms",
        "external_labels": {"service": "sentiment"},
    } == document["global"]
    assert ["a.yml"] == document["rule_files"]
    assert ["127.0.0.1:19093"] == document["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]


def test_without_alertmanager_nobody_is_notified() -> None:
    """The rules still run where Alertmanager cannot be had."""
    assert "alerting" not in parse(render_prometheus(SCRAPES, None, RULES))[0]


def test_an_unknown_job_is_refused() -> None:
    """A job that no rule speaks about would be watched by nobody."""
    with pytest.raises(ValueError, match="unknown job 'exporter': rules speak about service, inferdeck-exporter"):
        render_prometheus([Scrape("exporter", "127.0.0.1:9464")], None, RULES)


def test_two_paths_in_one_job_are_refused() -> None:
    """A job has one path; the second would be scraped at the first's."""
    with pytest.raises(ValueError, match="job 'service' has two paths"):
        render_prometheus([Scrape("service", "a:1"), Scrape("service", "b:1", "/other")], None, RULES)


@given(st.integers(min_value=1, max_value=10_000_000))
def test_durations_are_exact_to_the_millisecond(milliseconds: int) -> None:
    """What Prometheus reads is the duration that was meant."""
    text = seconds(milliseconds / 1000)

    read = int(text.removesuffix("ms")) if text.endswith("ms") else int(text.removesuffix("s")) * 1000
    assert milliseconds == read


@pytest.mark.parametrize("value", [0, -1, 0.0001])
def test_a_duration_that_rounds_to_nothing_is_refused(value: float) -> None:
    """Prometheus has no interval of zero."""
    with pytest.raises(ValueError, match="too short"):
        seconds(value)


@pytest.mark.usefixtures("tools")
def test_a_cluster_is_scraped_where_its_file_names_it(tmp_path: Path) -> None:
    """Only what rules read is kept, of our own pods and of the nodes; without the file there is no such job."""
    text = render_prometheus(SCRAPES, None, [], 5, cluster_targets=tmp_path / "kube-state-metrics.json")
    path = tmp_path / "prometheus.yml"
    path.write_text(text, encoding="utf-8")
    job = parse(text)[0]["scrape_configs"][-1]
    kept = re.compile(job["metric_relabel_configs"][0]["regex"])

    assert 0 == run_tool("promtool", ["check", "config", path]).rc
    assert ("kube-state-metrics", True) == (job["job_name"], job["honor_labels"])
    assert [[str(tmp_path / "kube-state-metrics.json")]] == [one["files"] for one in job["file_sd_configs"]]
    assert all(kept.fullmatch(one) for one in ("kube_pod_status_phase;inferdeck", "kube_node_status_allocatable;"))
    assert not any(kept.fullmatch(one) for one in ("kube_pod_status_phase;other", "kube_pod_info;inferdeck"))
    assert KUBERNETES_JOB not in render_prometheus(SCRAPES, None, [], 5)
