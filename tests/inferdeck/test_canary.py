"""The canary's share is set, shown and taken back from the console; each result fits its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inferdeck.cli import run
from inferdeck.schema import load_schema, validate
from service.canary.state import CanaryStore


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the canary's state in a state folder of this test."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    return tmp_path / "service" / "canary"


def told(capsys: pytest.CaptureFixture[str], verb: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    """Return a verb's result, held against its schema."""
    assert code == run(["canary", verb, *arguments, "--json"])
    payload: dict[str, Any] = json.loads(capsys.readouterr().out)
    validate(f"canary_{verb}", payload)
    assert payload.keys() <= load_schema(f"canary_{verb}")["properties"].keys()
    return payload


def test_it_is_set_shown_widened_and_taken_back(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What workers read is what was set; a rollback keeps the model and leaves no share."""
    assert told(capsys, "status")["model"] is None
    told(capsys, "rollback", code=1)
    told(capsys, "set", "--model", "triton:1", "--share", "0.1")
    assert 0.1 == told(capsys, "set", "--share", "0.5")["before"]["share"]
    found = CanaryStore(state).read()
    assert found is not None
    assert ("triton:1", 0.5, "operator") == (found.model, found.share, found.by)
    assert told(capsys, "rollback")["done"]
    assert not told(capsys, "rollback")["done"]
    after = told(capsys, "status")
    assert ("triton:1", 0.0, True, 1) == (
        after["model"],
        after["share"],
        after["rolled_back"],
        after["rollbacks"]["operator"],
    )


@pytest.mark.parametrize(
    "arguments",
    [["--share", "0.1"], ["--share", "1.5"], ["--share", "nan"], ["--model", "/nowhere"], []],
    ids=["no model", "over 1", "nan", "no folder", "nothing"],
)
def test_what_cannot_be_is_refused_in_one_line(
    state: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """And nothing is written."""
    assert 2 == run(["canary", "set", *arguments])
    assert 1 == len(capsys.readouterr().err.splitlines())
    assert CanaryStore(state).read() is None


def test_a_damaged_state_is_said_with_its_mend(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is guessed, and nothing overwritten."""
    state.mkdir(parents=True)
    (state / "state.json").write_text("{")
    for arguments in (["status"], ["set", "--share", "0"], ["rollback"]):
        assert 2 == run(["canary", *arguments])
        assert "state.json" in capsys.readouterr().err
    assert "{" == (state / "state.json").read_text()
