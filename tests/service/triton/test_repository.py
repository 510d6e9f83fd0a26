"""The repository is the shipped configuration beside the graphs that training wrote."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from service.artifacts import ArtifactsMissing
from service.triton.home import Home, InstallError, install
from service.triton.repository import lay_out


def test_the_configuration_is_the_articles() -> None:
    """Batches of 32, preferred 8, 16, 32, 10 ms, both versions, one process for each."""
    text = files("service.model_repository").joinpath("sentiment/config.pbtxt").read_text(encoding="utf-8")

    assert re.search(r"max_batch_size: 32\b", text)
    assert re.search(r"preferred_batch_size: \[ 8, 16, 32 \]", text)
    assert re.search(r"max_queue_delay_microseconds: 10000\b", text)
    assert "version_policy { specific { versions: [ 1, 2 ] } }" in text
    assert "instance_group [ { count: 1 kind: KIND_CPU } ]" in text
    assert 'backend: "onnxruntime"' in text


def test_without_a_model_there_is_no_repository(tmp_path: Path) -> None:
    """One line, with the mend."""
    with pytest.raises(ArtifactsMissing, match="inferdeck train"):
        lay_out(tmp_path / "none", tmp_path / "repository")


def test_an_environment_that_is_not_there_says_so_and_another_version_is_not_used(tmp_path: Path) -> None:
    """`complete` names what it was made of, and is written last."""
    assert "inferdeck triton install" in str(Home(tmp_path).lacks())

    (tmp_path / "complete").write_text("something older", encoding="ascii")

    assert "another version" in str(Home(tmp_path).lacks())


def test_where_it_cannot_be_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This server exists for Linux."""
    monkeypatch.setattr("sys.platform", "darwin")

    with pytest.raises(InstallError, match="NVIDIA's image"):
        install(tmp_path / "triton")
