"""Tests of inferdeck/check_uids.py: a uid that two things bear is found, whatever files they are in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from inferdeck.check_uids import check_uids

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dashboards/generated", "dashboards/provisioning/datasources", "alerts/grafana/provisioning")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what Grafana is given."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_what_is_shipped_has_uids_of_its_own(checkout: Path) -> None:
    """Dashboards, data sources, rules and contact points together."""
    (found,) = check_uids(checkout)

    assert "ok" == found.state
    assert int(found.detail.split()[0]) > 30


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("dashboards/generated/inferdeck-gpu.json", '"uid": "inferdeck-gpu"', '"uid": "inferdeck-overview"'),
        ("dashboards/provisioning/datasources/inferdeck.yaml", "uid: inferdeck-jaeger", "uid: inferdeck-prometheus"),
        ("alerts/grafana/provisioning/rules.yaml", "uid: inferdeck-disk_full", "uid: inferdeck-watchdog"),
        ("alerts/grafana/provisioning/contact_points.yaml", "uid: inferdeck-slack", "uid: inferdeck-telemetry_loss"),
    ],
)
def test_a_uid_that_stands_twice_is_told_with_both_places(checkout: Path, path: str, old: str, new: str) -> None:
    """Within one kind as over kinds, in one file as over files."""
    text = (checkout / path).read_text(encoding="utf-8")
    assert old in text
    (checkout / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    (found,) = check_uids(checkout)
    assert ("fail", "give one of them another") == (found.state, found.mend)
    assert found.detail.startswith(f"{new.rpartition(' ')[2].strip(chr(34))} is the uid of ")
    assert path in found.detail


@pytest.mark.parametrize("text", ["{", json.dumps({"title": "without uid"}), "[]"])
def test_a_file_that_cannot_be_read_is_a_finding(checkout: Path, text: str) -> None:
    """And no traceback."""
    (checkout / "dashboards/generated/inferdeck-gpu.json").write_text(text)

    (found,) = check_uids(checkout)
    assert ("fail", True) == (found.state, found.detail.startswith("cannot be read: "))
