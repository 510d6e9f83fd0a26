from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from probes.private_file import leftovers, write_private


def test_a_file_is_private_and_whole(tmp_path: Path) -> None:
    """The owner alone may read it, whatever the file before it allowed, and nothing lies beside it."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o666)
    write_private(path, b"new", flush=True)

    assert (b"new", 0o600) == (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    assert ["file"] == [one.name for one in tmp_path.iterdir()]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    """What it leads to stays as it is."""
    (tmp_path / "target").write_bytes(b"theirs")
    (tmp_path / "file").symlink_to(tmp_path / "target")
    write_private(tmp_path / "file", b"ours")

    assert (b"theirs", b"ours") == ((tmp_path / "target").read_bytes(), (tmp_path / "file").read_bytes())


def test_a_failed_write_names_its_file_and_leaves_the_old_content(tmp_path: Path) -> None:
    """A folder in the way, a missing folder, a full disk: the path is told, and no new file stays."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "x").touch()
    (tmp_path / "file").write_bytes(b"old")

    def full(_old: Path, _new: Path) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(IsADirectoryError, match="taken"):
        write_private(tmp_path / "taken", b"new")
    with pytest.raises(FileNotFoundError, match="none/file"):
        write_private(tmp_path / "none" / "file", b"new")
    with pytest.raises(OSError, match=r"No space left.*file"):
        write_private(tmp_path / "file", b"new", replace=full)
    assert b"old" == (tmp_path / "file").read_bytes()
    assert ["file", "taken"] == sorted(one.name for one in tmp_path.iterdir())


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C between writing and renaming is passed on, and takes the new file with it."""

    def interrupted(_old: Path, _new: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_private(tmp_path / "file", b"new", replace=interrupted)
    assert [] == list(tmp_path.iterdir())


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    """Each has a new file of its own; the last rename wins."""
    contents = [bytes([number]) * 10_000 for number in range(8)]
    threads = [threading.Thread(target=write_private, args=(tmp_path / "file", content)) for content in contents]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert (tmp_path / "file").read_bytes() in contents
    assert ["file"] == [one.name for one in tmp_path.iterdir()]


def test_what_a_killed_writer_left_is_found_and_nothing_else(tmp_path: Path) -> None:
    """By its exact name: files of others beside it are not leftovers."""
    mine = tmp_path / f".file.{'0a' * 8}"
    for name in (mine.name, ".file.txt", ".other." + "0a" * 8, "file"):
        (tmp_path / name).touch()

    assert [mine] == leftovers(tmp_path / "file")
