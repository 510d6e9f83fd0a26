from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path

import pytest

from service.training.publish import Busy, check_target, publish_folder, training_lock


def names(folder: Path) -> list[str]:
    """Return what lies in the folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def test_files_arrive_private_and_nothing_else_stays(tmp_path: Path) -> None:
    """The folder is 0700, its files 0600, and no temporary folder is left beside it."""
    publish_folder(tmp_path / "model", {"a": b"1", "b": b"2"})

    assert ["model"] == names(tmp_path)
    assert ["a", "b"] == names(tmp_path / "model")
    assert 0o700 == stat.S_IMODE((tmp_path / "model").stat().st_mode)
    assert 0o600 == stat.S_IMODE((tmp_path / "model" / "a").stat().st_mode)


def test_a_new_model_replaces_the_old_one_whole(tmp_path: Path) -> None:
    """No file of the old model survives in the new one; leftovers of a killed training go."""
    publish_folder(tmp_path / "model", {"a": b"1", "old": b"1"})
    (tmp_path / ".model.new-killed").mkdir()

    publish_folder(tmp_path / "model", {"a": b"2"})

    assert ["model"] == names(tmp_path)
    assert {"a": b"2"} == {p.name: p.read_bytes() for p in (tmp_path / "model").iterdir()}


def test_a_failed_write_leaves_the_old_model(tmp_path: Path) -> None:
    """When a file cannot be written the old model is untouched and the temporary folder is gone."""
    publish_folder(tmp_path / "model", {"a": b"1"})

    with pytest.raises(OSError, match="No such file"):
        publish_folder(tmp_path / "model", {"a": b"2", "no/such/folder": b""})

    assert ["model"] == names(tmp_path)
    assert b"1" == (tmp_path / "model" / "a").read_bytes()


def test_a_model_that_cannot_be_moved_in_gives_the_old_one_back(tmp_path: Path) -> None:
    """When the last step fails the old model returns to its place."""

    def fail_for_new(source: Path, target: Path) -> None:
        if ".new-" in source.name:
            raise OSError(5, "Input/output error")
        source.rename(target)

    publish_folder(tmp_path / "model", {"a": b"1"})

    with pytest.raises(OSError, match="Input/output"):
        publish_folder(tmp_path / "model", {"a": b"2"}, move=fail_for_new)

    assert ["model"] == names(tmp_path)
    assert b"1" == (tmp_path / "model" / "a").read_bytes()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """Training never replaces a folder that is not a model's; an empty or a missing one is fine."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()

    for good in ("empty", "missing"):
        check_target(tmp_path / good, "config.json")
    for bad in ("home", "file"):
        with pytest.raises(FileExistsError, match="something else"):
            check_target(tmp_path / bad, "config.json")


def test_the_second_waits_and_says_so_once_then_gives_up(tmp_path: Path) -> None:
    """While the lock is held another taker waits, tells it once, and ends with an error after its time."""
    told: list[str] = []
    seconds = itertools.count(0.0, 1.0)

    with (
        training_lock(tmp_path / "m", lambda: told.append("first")),
        pytest.raises(Busy, match="for 3 s"),
        training_lock(
            tmp_path / "m",
            lambda: told.append("second"),
            timeout_seconds=3,
            clock=lambda: next(seconds),
            sleep=lambda _seconds: None,
        ),
    ):
        raise AssertionError("the lock was given twice")

    assert ["second"] == told


def test_the_lock_is_free_after_its_holder(tmp_path: Path) -> None:
    """Leaving the block, by an error too, lets the next one in at once."""
    for _ in range(2):
        with pytest.raises(KeyError), training_lock(tmp_path / "m", lambda: pytest.fail("had to wait")):
            raise KeyError

    assert 0o600 == stat.S_IMODE((tmp_path / ".m.lock").stat().st_mode)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A read-only parent is the operating system's error, passed on."""
    tmp_path.chmod(0o500)

    with pytest.raises(PermissionError):
        publish_folder(tmp_path / "model", {"a": b""})
