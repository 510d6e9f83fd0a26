"""What `down --purge` deletes, and above all what it leaves."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from inferdeck.settings import load_settings
from inferdeck.stack.commands import down
from inferdeck.stack.state import StackState, write_state


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a state folder and a folder of rows that hold files of the user beside what a stack leaves."""
    state, rings = tmp_path / "home", tmp_path / "shared"
    for folder in (state / "logs", state / "reports", state / "run", state / "letters", rings, rings / "photos"):
        folder.mkdir(parents=True)
    for name in ("0123abcd-0123456789abcdef.ring", "key", "control", "thesis.tex"):
        (rings / name).touch()
    (rings / "0123abcd-0000000000000000.ring").symlink_to(rings / "thesis.tex")
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(state))
    monkeypatch.setenv("INFERDECK_RING_DIR", str(rings))
    return state, rings


def test_only_what_a_stack_made_is_deleted(folders: tuple[Path, Path]) -> None:
    """The user's own files in both folders stay, and what a link leads to."""
    state, rings = folders
    write_state(StackState(str(state), str(rings), time.time(), phase="stopped"))

    down(load_settings(), purge=True)

    assert ["letters"] == [path.name for path in state.iterdir()]
    assert ["photos", "thesis.tex"] == sorted(path.name for path in rings.iterdir())


def test_a_folder_from_which_no_stack_was_started_is_left_alone(folders: tuple[Path, Path]) -> None:
    """Somebody else's `logs` and `reports` are not ours, whatever INFERDECK_STATE_DIR says."""
    state, rings = folders

    assert [] == down(load_settings(), purge=True)["purged"]
    assert ["letters", "logs", "reports", "run"] == sorted(path.name for path in state.iterdir())
    assert (rings / "key").exists()


def test_an_empty_variable_is_an_unset_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty state folder would be the working folder, for the stack and for each of its parts."""
    from exporters.settings import ExporterSettings
    from probes.settings import default_ring_dir
    from runbooks.settings import TriageSettings

    monkeypatch.chdir(tmp_path)
    for name in ("INFERDECK_STATE_DIR", "INFERDECK_RING_DIR", "INFERDECK_SERVICE_MODEL_DIR"):
        monkeypatch.setenv(name, "")
    settings = load_settings()

    assert tmp_path / ".inferdeck" == settings.state_path
    assert tmp_path / "build" / "model" == settings.model_path
    assert Path(".inferdeck") == ExporterSettings().state_dir
    assert Path(".inferdeck") == TriageSettings().state_dir
    assert ExporterSettings().ring_dir is None
    assert TriageSettings().ring_dir is None
    assert Path(".inferdeck/rings/x") == default_ring_dir("x", {"INFERDECK_STATE_DIR": ""}, tmp_path / "no-shm")
