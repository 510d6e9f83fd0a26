"""`train --search`: options that belong together, and one line for what stands in a search's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from inferdeck.errors import CannotRun
from inferdeck.training import train_model
from inferdeck.verbs.upkeep import train
from service.training import search as searching
from service.training.publish import training_lock


@pytest.mark.parametrize("option", [["--trials", "3"], ["--minutes", "1"], ["--study", "s.db"]])
def test_options_of_a_search_go_with_it(option: list[str]) -> None:
    """Nobody waits for a search that is not done."""
    done = CliRunner().invoke(train, option)
    assert 2 == done.exit_code
    assert "go with --search" in done.output


def test_a_study_in_use_is_said_before_anything_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's folder stays as it was."""
    monkeypatch.setattr(searching, "_LOCK_SECONDS", 0.1)
    study = tmp_path / "study.db"
    with training_lock(study, lambda: None), pytest.raises(CannotRun, match=r"another search works on .*--study"):
        train_model(tmp_path / "model", lambda _what, _share: None, study=study)
    assert not (tmp_path / "model").exists()


def test_a_search_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optuna is in an extra of its own."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(CannotRun, match=r"inferdeck\[pipeline\]"):
        train_model(tmp_path / "model", lambda _what, _share: None, study=tmp_path / "study.db")
