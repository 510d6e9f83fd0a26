"""A run packed and unpacked is the run; what comes from elsewhere is held to bounds."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from inferdeck.drill.packing import SUFFIX, pack_run, unpacked_runs
from inferdeck.errors import CannotRun


def make_run(folder: Path) -> Path:
    """Write a run's evidence, logs beside it."""
    (folder / "rings").mkdir(parents=True)
    (folder / "rings" / "a.ring").write_bytes(bytes(5_000_000) + b"row")
    (folder / "prometheus" / "wal").mkdir(parents=True)
    (folder / "prometheus" / "wal" / "00000000").write_bytes(b"samples")
    (folder / "state" / "logs").mkdir(parents=True)
    (folder / "state" / "logs" / "service.log").write_text("a line", encoding="utf-8")
    (folder / "ground_truth.json").write_text('{"fault": {}}', encoding="utf-8")
    (folder / "alerts.json").write_text("[]", encoding="utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file's bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_scoring_needs_comes_back_in_a_hundredth_of_the_room(tmp_path: Path) -> None:
    """And the folder is gone; logs stay out."""
    whole = contents(make_run(tmp_path / "001"))
    make_run(tmp_path / "002")

    file = pack_run(tmp_path / "001")

    assert not (tmp_path / "001").exists()
    assert 0o600 == file.stat().st_mode & 0o777
    assert file.stat().st_size < 50_000
    with unpacked_runs(tmp_path) as folders:
        assert ["001", "002"] == [one.name for one in folders]
        del whole["state/logs/service.log"]
        found = contents(folders[0])
        del found["manifest.json"]
        assert whole == found
        scratch = folders[0]
    assert not scratch.exists()


def test_no_owner_of_this_machine_is_in_it(tmp_path: Path) -> None:
    """Names of people are nobody's business."""
    with tarfile.open(pack_run(make_run(tmp_path / "001"))) as file:
        assert {("", "", 0, 0)} == {(one.uname, one.gname, one.uid, one.gid) for one in file}


def test_a_disk_that_is_full_leaves_the_run_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence is worth more than the room."""
    folder = make_run(tmp_path / "001")
    whole = contents(folder)

    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(CannotRun, match="No space left"):
        pack_run(folder)

    assert whole == contents(folder)
    assert [folder] == list(tmp_path.iterdir())


def test_a_run_that_could_not_be_opened_again_is_not_packed(tmp_path: Path) -> None:
    """Names that the file's format does not allow would lose the run."""
    folder = make_run(tmp_path / "001")
    (folder / "rings" / ".odd").write_bytes(b"x")
    with pytest.raises(CannotRun, match="refused"):
        pack_run(folder)

    assert [folder] == list(tmp_path.iterdir())


def test_what_is_no_packed_run_is_one_line(tmp_path: Path) -> None:
    """And no traceback."""
    (tmp_path / f"001{SUFFIX}").write_bytes(b"no archive")
    with pytest.raises(CannotRun, match=r"001\.run\.tar\.gz"), unpacked_runs(tmp_path):
        pass


def test_a_packed_run_without_its_truth_is_none(tmp_path: Path) -> None:
    """As a folder without one is none."""
    folder = make_run(tmp_path / "001")
    (folder / "ground_truth.json").unlink()
    pack_run(folder)
    with unpacked_runs(tmp_path) as folders:
        assert [] == folders
