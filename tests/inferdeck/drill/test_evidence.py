"""Evidence is a true copy, and copies of live rings count as live while a rescore holds them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from inferdeck.drill.evidence import copy_data_folder, copy_rings, hold_alive, read_json, save_json
from inferdeck.errors import CannotRun
from probes.folder import is_locked


def test_rings_are_copied_with_their_liveness_and_without_the_key(tmp_path: Path) -> None:
    """Bytes are equal, liveness is noted, the folder's secret stays behind, copies are private."""
    rings, copies = tmp_path / "rings", tmp_path / "copies"
    rings.mkdir()
    (rings / "a.ring").write_bytes(b"a" * 3_000_000)
    (rings / "b.ring").write_bytes(b"b")
    (rings / "key").write_bytes(b"secret")
    owner = os.open(rings / "a.ring", os.O_RDWR)
    fcntl.flock(owner, fcntl.LOCK_EX)

    alive = copy_rings(rings, copies)

    os.close(owner)
    assert {"a.ring": True, "b.ring": False} == alive
    assert ["a.ring", "b.ring"] == sorted(path.name for path in copies.iterdir())
    assert b"a" * 3_000_000 == (copies / "a.ring").read_bytes()
    assert 0o600 == (copies / "a.ring").stat().st_mode & 0o777
    assert 0o700 == copies.stat().st_mode & 0o777


def test_held_copies_look_alive_and_others_dead(tmp_path: Path) -> None:
    """Only while they are held, and only those that were alive."""
    for name in ("a.ring", "b.ring"):
        (tmp_path / name).touch()

    with hold_alive(tmp_path, {"a.ring": True, "b.ring": False}):
        assert is_locked(tmp_path / "a.ring")
        assert not is_locked(tmp_path / "b.ring")

    assert not is_locked(tmp_path / "a.ring")


def test_a_data_folder_is_copied_without_its_lock(tmp_path: Path) -> None:
    """A Prometheus that starts on the copy must not find the lock of the first one."""
    source = tmp_path / "prometheus"
    (source / "wal").mkdir(parents=True)
    (source / "wal" / "00000000").write_bytes(b"x")
    (source / "lock").touch()

    copy_data_folder(source, tmp_path / "copy")

    assert ["wal"] == [path.name for path in (tmp_path / "copy").iterdir()]
    with pytest.raises(CannotRun, match="no Prometheus data"):
        copy_data_folder(tmp_path / "none", tmp_path / "other")


def test_json_is_private_and_a_damaged_file_is_a_clear_line(tmp_path: Path) -> None:
    """What was saved is read back; half a file is told as such."""
    path = tmp_path / "x.json"
    save_json(path, {"a": [1, None]})

    assert {"a": [1, None]} == read_json(path)
    assert 0o600 == path.stat().st_mode & 0o777

    path.write_text('{"a": [1')
    with pytest.raises(CannotRun, match=r"x\.json cannot be read"):
        read_json(path)
