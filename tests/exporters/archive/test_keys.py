from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from exporters.archive.keys import forget_old_keys, hashes_of, remember_key
from probes.folder import prepare_folder, read_key, session_hash

MINE = "mine-0123456789abcdef"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An empty archive."""
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder


def test_a_session_hashes_by_every_key_that_was_used(ring_dir: Path, archive: Path) -> None:
    """The present one first; each once."""
    keys = []
    for _ in range(2):
        prepare_folder(ring_dir)
        (ring_dir / "key").unlink(missing_ok=True)
        keys.append(read_key(ring_dir, create=True))
        remember_key(archive, ring_dir)
        remember_key(archive, ring_dir)
    assert [session_hash(keys[1], MINE.encode()), session_hash(keys[0], MINE.encode())] == hashes_of(
        MINE, ring_dir, archive
    )
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in archive.iterdir()}
    assert 2 == len(list(archive.iterdir()))


def test_without_any_key_nothing_can_be_found(ring_dir: Path, archive: Path) -> None:
    """A folder without a key has no hashes; a damaged key is no key."""
    remember_key(archive, ring_dir)
    assert [] == list(archive.iterdir())
    assert [] == hashes_of(MINE, ring_dir, archive)
    (archive / "00.key").write_bytes(b"short")
    assert [] == hashes_of(MINE, ring_dir, archive)


def test_keys_go_when_no_segment_can_need_them(ring_dir: Path, archive: Path) -> None:
    """By the time of their last use."""
    prepare_folder(ring_dir)
    read_key(ring_dir, create=True)
    remember_key(archive, ring_dir)
    (path,) = archive.iterdir()
    os.utime(path, (time.time() - 100, time.time() - 100))
    forget_old_keys(archive, 200)
    assert path.exists()
    forget_old_keys(archive, 50)
    assert not path.exists()
