"""The compose stack's options on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.cli import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "--scale", "3"], "--profile, --without, --scale and --no-build belong to --stack compose"),
        (["up", "--no-build"], "--profile, --without, --scale and --no-build belong to --stack compose"),
        (["up", "--stack", "compose", "--foreground"], "--foreground belongs to the embedded stack"),
        (["up", "--stack", "swarm"], "'swarm' is not one of"),
        (["up", "--stack", "compose", "--scale", "0"], "0 is not in the range 1<=x<=16"),
    ],
)
def test_options_that_do_not_go_together_are_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with exit code 2; nothing was started."""
    assert 2 == run(words)
    assert said in capsys.readouterr().err


def test_without_an_engine_the_embedded_stack_is_pointed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing of docker, in one line; no file of secrets is written for nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INFERDECK_COMPOSE_ENGINE", "docker")
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("INFERDECK_COMPOSE_ENV_FILE", str(tmp_path / "secrets.env"))

    assert 2 == run(["up", "--stack", "compose"])
    assert "docker is not there; install Docker with its compose plugin" in capsys.readouterr().err
    assert not (tmp_path / "secrets.env").exists()
