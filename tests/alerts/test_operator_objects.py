"""Tests of alerts/operator_objects.py: the Operator's Prometheus gets the very rules, and labels that they know."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from alerts.operator_objects import OPERATOR_FOLDER, PORTS
from alerts.prometheus_config import JOBS
from alerts.promtool import run_tool
from alerts.yaml_text import dump, parse

ROOT = Path(__file__).resolve().parents[2]


def read(name: str) -> dict[str, Any]:
    """Return a committed object."""
    document, _ = parse((ROOT / OPERATOR_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def relabelled(labels: dict[str, str], rules: list[dict[str, Any]]) -> dict[str, str]:
    """Return labels after relabelling, as far as our objects use it: replace with one source or none, and labeldrop."""
    for rule in rules:
        if rule.get("action") == "labeldrop":
            labels = {name: value for name, value in labels.items() if not re.fullmatch(rule["regex"], name)}
        else:
            source = ";".join(labels.get(name, "") for name in rule.get("sourceLabels", ()))
            labels = {**labels, rule["targetLabel"]: rule.get("replacement", source)}
    return labels


def test_the_rules_are_those_of_the_rule_files() -> None:
    """Group by group: neither more, nor less, nor others."""
    files = sorted((ROOT / "alerts/rules").glob("*.yml"))
    groups = {group["name"]: group for path in files for group in parse(path.read_text(encoding="utf-8"))[0]["groups"]}

    found = {group["name"]: group for group in read("prometheusrule")["spec"]["groups"]}

    assert groups == found
    assert len(found) == len(read("prometheusrule")["spec"]["groups"])


@pytest.mark.usefixtures("tools")
def test_promtool_accepts_the_rules_of_the_object(tmp_path: Path) -> None:
    """They are rules for the Prometheus that the Operator runs as well."""
    (tmp_path / "rules.yml").write_text(dump(read("prometheusrule")["spec"], "from the object"), encoding="utf-8")

    done = run_tool("promtool", ["check", "rules", tmp_path / "rules.yml"])

    assert 0 == done.rc, done.output


def test_series_bear_the_job_and_the_service_that_rules_speak_about() -> None:
    """The Operator's own names for them (namespace/object, the Kubernetes Service) would fit no rule."""
    endpoints = read("podmonitor")["spec"]["podMetricsEndpoints"]
    meta = {"__meta_kubernetes_pod_label_app_kubernetes_io_name": "sentiment", "job": "inferdeck/inferdeck"}

    found = {one["port"]: relabelled(meta, one["relabelings"]) for one in endpoints}

    assert {port: (job, "sentiment") for job, port in PORTS.items()} == {
        port: (labels["job"], labels["service"]) for port, labels in found.items()
    }
    assert set(PORTS) <= set(JOBS)


def test_triage_belongs_to_no_service() -> None:
    """It looks at all of them: with the name of its Kubernetes Service its figures would be one more's."""
    (endpoint,) = read("servicemonitor")["spec"]["endpoints"]

    labels = relabelled({"service": "triage", "job": "triage-svc"}, endpoint["relabelings"])

    assert {"job": "triage"} == labels


@pytest.mark.parametrize("name", ["prometheusrule", "podmonitor", "servicemonitor"])
def test_objects_are_of_the_operators_kinds(name: str) -> None:
    """Kind, version and a name that Kubernetes takes."""
    document = read(name)

    assert "monitoring.coreos.com/v1" == document["apiVersion"]
    assert name == document["kind"].lower()
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", document["metadata"]["name"])
    assert "inferdeck" == document["metadata"]["labels"]["app.kubernetes.io/part-of"]
