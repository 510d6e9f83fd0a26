"""The program fills the disk of the state folder, its twin leaves a fifth, and what it covered comes back."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("disk_full.py")
    spec = importlib.util.spec_from_file_location("disk_full_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder with what the exporter and Prometheus keep there."""
    (tmp_path / "prometheus" / "wal").mkdir(parents=True)
    (tmp_path / "reports").mkdir()
    (tmp_path / "exporter.state").write_text("totals")
    return tmp_path


def mounted(state: Path, hook: str) -> Any:
    """Return the program's hook over the folder, or skip where nothing can be mounted."""
    program = load()
    if why := program.cannot_cause():
        pytest.skip(why)
    return getattr(program, hook)(SimpleNamespace(state_dir=state))


def test_nothing_more_can_be_written_except_where_the_failure_is_watched(state: Path) -> None:
    """The exporter's next state does not fit; Prometheus goes on writing, on its own disk."""
    with mounted(state, "cause"):
        assert 0 == os.statvfs(state).f_bavail
        assert "totals" == (state / "exporter.state").read_text()
        with pytest.raises(OSError, match="No space left"):
            (state / "exporter.state.new").write_bytes(bytes(5000))
        (state / "prometheus" / "wal" / "000001").write_bytes(bytes(5000))

    assert 5000 == (state / "prometheus" / "wal" / "000001").stat().st_size
    assert not (state / "core.dump").exists()
    assert "totals" == (state / "exporter.state").read_text()


def test_the_twin_leaves_a_fifth_free(state: Path) -> None:
    """Looks alike, and everything can still be written."""
    with mounted(state, "twin_cause"):
        found = os.statvfs(state)
        assert 0.15 < found.f_bavail / found.f_blocks < 0.25
        (state / "reports" / "one.json").write_bytes(bytes(50_000))

    assert not (state / "core.dump").exists()


def test_a_user_who_is_not_root_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried that cannot work."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert "root" in str(load().cannot_cause())


def test_filling_stops_at_the_size_asked_for(tmp_path: Path) -> None:
    """Without a size it stops when the disk is full, which is not tried here."""
    load().fill(tmp_path / "file", 10_000)

    assert 12_288 == (tmp_path / "file").stat().st_size
