"""A small catalogue and a checkout of its own for the tests of the alerts."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alerts.promtool import find_tool
from alerts.yaml_text import dump

ROOT = Path(__file__).resolve().parents[2]
SERIES = {"series": 'model_requests_in_flight{job="inferdeck-exporter"}'}
QUIET = [{"at": "60s", "firing": []}]

# A made-up alert on a slug of the closed list: more than ten requests in flight for ten seconds.
DOCUMENT: dict[str, Any] = {
    "slug": "thread_pool_exhausted",
    "kind": "failure",
    "layer": "runtime",
    "alert": "ThreadPoolExhausted",
    "failure": "slow calls occupy the executor",
    "expr": 'model_requests_in_flight{job="inferdeck-exporter"} > {requests}\n',
    "for": "10s",
    "severity": "ticket",
    "channel": "ticket",
    "thresholds": {"requests": {"value": 10, "source": "a number made up for tests"}},
    "no_data": "silent",
    "no_data_state": "ok",
    "summary": "Too many requests in flight",
    "description": "{{ $value }} requests are in flight, more than {requests}.",
    "first_step": "Run `inferdeck triage`.",
    "runbook": "ThreadPoolExhausted",
    "tests": [
        {
            "name": "eleven fire",
            "kind": "fires",
            "input": [{**SERIES, "values": "11+0x24"}],
            "expect": [
                {
                    "at": "60s",
                    "firing": [
                        {
                            "labels": {"job": "inferdeck-exporter"},
                            "description": "11 requests are in flight, more than 10.",
                        }
                    ],
                }
            ],
        },
        {"name": "ten do not", "kind": "just_below", "input": [{**SERIES, "values": "10+0x24"}], "expect": QUIET},
        {"name": "a surge does not", "kind": "surge", "input": [{**SERIES, "values": "1+0x24"}], "expect": QUIET},
        {"name": "nothing does not", "kind": "no_data", "input": [], "expect": QUIET},
        {"name": "one does not", "kind": "first_sample", "input": [{**SERIES, "values": "_x11 11"}], "expect": QUIET},
        {
            "name": "fewer again do not",
            "kind": "recovers",
            "input": [{**SERIES, "values": "11+0x11 1+0x24"}],
            "expect": [
                {
                    "at": "45s",
                    "firing": [
                        {
                            "labels": {"job": "inferdeck-exporter"},
                            "description": "11 requests are in flight, more than 10.",
                        }
                    ],
                },
                {"at": "90s", "firing": []},
            ],
        },
    ],
}


@pytest.fixture
def document() -> dict[str, Any]:
    """A valid catalogue file as a document that the test may change."""
    return copy.deepcopy(DOCUMENT)


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a document into a catalogue folder and returns the file's path."""
    folder = tmp_path / "catalogue"
    folder.mkdir()

    def write(document: dict[str, Any], name: str | None = None) -> Path:
        path = folder / f"{name or document['slug']}.yaml"
        path.write_text(dump(document, "a test's alert"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout that holds the shipped alerts and runbook pages and nothing else, all tracked."""
    root = tmp_path / "checkout"
    for folder in (
        "alerts/catalogue",
        "alerts/recording",
        "alerts/operator",
        "alerts/rules",
        "alerts/tests",
        "alerts/grafana/provisioning",
        "alerts/grafana/withdrawn",
    ):
        shutil.copytree(ROOT / folder, root / folder)
    grafana = ("alerts/grafana/grafana.env", "alerts/grafana/shipped_rules.txt")
    for name in ("alerts/README.md", "alerts/alertmanager.yml", *grafana):
        shutil.copy(ROOT / name, root / name)
    (root / "dashboards").mkdir()
    shutil.copy(ROOT / "dashboards/panels.json", root / "dashboards/panels.json")
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(command, cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture(scope="session")
def tools() -> None:
    """Skip where Prometheus' tools are missing; with CI=true that is a failure, so that the gate cannot pass blind."""
    missing = [
        name for name in ("prometheus", "promtool", "prometheus-alertmanager", "amtool") if find_tool(name) is None
    ]
    if missing:
        reason = f"{', '.join(missing)} not found: run `python -m inferdeck.tool_install`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
