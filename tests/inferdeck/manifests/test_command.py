"""`inferdeck doctor --manifests` as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from inferdeck.cli import run as run_console
from inferdeck.schema import load_schema


@pytest.fixture
def files(tmp_path: Path, deployment: Any, nodes: list[Any]) -> Path:
    """Return a folder with objects.yaml and nodes.yaml."""
    deployment["spec"]["template"]["metadata"] = {"labels": {"app": "sentiment"}}
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "sentiment", "namespace": "inferdeck"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "sentiment"}}},
    }
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all([deployment, budget]))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump({"kind": "List", "items": nodes}))
    return tmp_path


@pytest.fixture
def run(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return what runs the command and returns its exit code and what it printed, each run of white space one space."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(files / "state"))
    monkeypatch.setenv("INFERDECK_RING_DIR", str(files / "rings"))

    def typed(*words: str) -> tuple[int, str]:
        code = run_console(["doctor", *words])
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return typed


def test_right_objects_pass(files: Path, run: Callable[..., tuple[int, str]]) -> None:
    """Exit 0, and the JSON is of doctor's schema."""
    given = ("--manifests", str(files / "objects.yaml"), "--nodes", str(files / "nodes.yaml"))
    code, printed = run(*given, "--warm-up", "12", "--longest-request", "1", "--json")
    payload = json.loads(printed)

    assert 0 == code
    assert {"ok"} == {check["state"] for check in payload["checks"]}
    Draft202012Validator(load_schema("doctor")).validate(payload)


def test_a_warm_up_over_the_budget_fails_by_its_slug(files: Path, run: Callable[..., tuple[int, str]]) -> None:
    """Exit 1, with the figures and the mend in the line."""
    code, printed = run("--manifests", str(files / "objects.yaml"), "--warm-up", "150")

    assert 1 == code
    assert "fail rollout_cuts_off: inferdeck/sentiment" in printed
    assert "under the measured warm-up of 150.0 s" in printed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--nodes", "x"], "--nodes goes with --manifests"),
        (["--warm-up", "3"], "--warm-up goes with --manifests"),
        (["--prometheus", "http://127.0.0.1:1"], "--prometheus goes with --mapping"),
        (["--mapping", "triton", "--manifests", "x"], "exclude each other"),
        (["--manifests", "/nowhere/objects.yaml"], "No such file"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    words: list[str], told: str, run: Callable[..., tuple[int, str]]
) -> None:
    """Options that mean nothing together are refused instead of being passed over in silence."""
    code, printed = run(*words)

    assert 2 == code
    assert told in printed
