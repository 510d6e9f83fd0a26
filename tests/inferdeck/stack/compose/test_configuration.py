"""What Prometheus and Alertmanager read in the containers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from alerts.promtool import find_tool
from inferdeck.stack.compose.configuration import generated_files, write_configuration
from inferdeck.stack.compose.project import NOTIFIERS


def test_only_one_notifier_is_told_of_alerts() -> None:
    """Prometheus knows an Alertmanager only in the file for that notifier; with Grafana it evaluates the same rules."""
    files = {name: yaml.safe_load(generated_files()[f"docker/prometheus/{name}.yml"]) for name in NOTIFIERS}

    assert ("alertmanager",) == tuple(name for name in NOTIFIERS if "alerting" in files[name])
    assert files["grafana"] == {key: value for key, value in files["alertmanager"].items() if key != "alerting"}


def test_a_scaled_service_is_found_by_its_name() -> None:
    """Each container is an address of one name, asked for again every 5 s."""
    config = yaml.safe_load(generated_files()["docker/prometheus/grafana.yml"])
    (job,) = [job for job in config["scrape_configs"] if job["job_name"] == "service"]

    assert "static_configs" not in job
    assert [{"names": ["service"], "type": "A", "port": 8081, "refresh_interval": "5s"}] == job["dns_sd_configs"]


@pytest.mark.parametrize("name", ["grafana", "alertmanager"])
def test_the_dashboards_choice_of_service_is_on_every_series_of_ours(name: str) -> None:
    """Put on by the scrape, and the same as what alerts without a series get; not on the parts of a profile."""
    config = yaml.safe_load(generated_files()[f"docker/prometheus/{name}.yml"])
    put_on = {
        job["job_name"]: [
            one["replacement"] for one in job.get("relabel_configs", []) if one["target_label"] == "service"
        ]
        + [one["labels"]["service"] for one in job.get("static_configs", []) if "labels" in one]
        for job in config["scrape_configs"]
    }

    ours = ("service", "inferdeck-exporter", "triage", "prometheus")
    assert {job: [config["global"]["external_labels"]["service"]] for job in ours} == {
        job: found for job, found in put_on.items() if found
    }


def test_writing_is_told_once(tmp_path: Path) -> None:
    """A second time there is nothing to do."""
    assert sorted(generated_files()) == sorted(write_configuration(tmp_path))
    assert [] == write_configuration(tmp_path)


@pytest.mark.parametrize("name", sorted(generated_files()))
def test_the_real_programs_take_the_files(tmp_path: Path, name: str) -> None:
    """Promtool and amtool check them; the token is a path in a container, and never the token itself."""
    tool = find_tool("amtool" if "alertmanager/" in name else "promtool")
    if tool is None:
        pytest.skip("no promtool or amtool here")
    path = tmp_path / "config.yml"
    path.write_text(generated_files()[name])
    words = ["check-config"] if "alertmanager/" in name else ["check", "config", "--syntax-only"]
    done = subprocess.run([str(tool), *words, str(path)], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr if done.returncode else "")
