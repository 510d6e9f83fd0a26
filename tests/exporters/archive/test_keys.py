from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from exporters.archive.keys import forget_old_keys, hashes_of, remember_key
from probes.folder import prepare_folder, read_key, session_hash
from probes.session_key import current_key, retired_keys, rotate

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

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


def test_keys_that_were_rotated_are_kept_too(ring_dir: Path, archive: Path, tmp_path: Path) -> None:
    """A look-up hashes with each; once no ring file is old enough, the archive alone has those before."""
    prepare_folder(ring_dir)
    keys = []
    for _ in range(3):
        rotate(tmp_path / "secret")
        keys.append(current_key(ring_dir, tmp_path / "secret"))
    remember_key(archive, ring_dir)
    expected = {session_hash(key, MINE.encode()) for key in keys}
    assert expected == set(hashes_of(MINE, ring_dir)) == set(hashes_of(MINE, ring_dir, archive))
    assert (2, 3) == (len(retired_keys(ring_dir)), len(list(archive.iterdir())))

    for path, _ in retired_keys(ring_dir):
        os.utime(path, (time.time() - 1000, time.time() - 1000))
    remember_key(archive, ring_dir)
    assert [] == retired_keys(ring_dir)
    assert expected == set(hashes_of(MINE, ring_dir, archive))


def test_a_retired_key_stays_as_long_as_a_ring_file_that_needs_it(
    fly: Callable[..., Flight], ring_dir: Path, archive: Path
) -> None:
    """Whether its worker lives or not; and beside one that cannot be read."""
    flight = fly()
    rotate(ring_dir.parent / "secret")
    current_key(ring_dir, ring_dir.parent / "secret")
    ((path, _),) = retired_keys(ring_dir)
    remember_key(archive, ring_dir)
    assert path.exists()
    os.utime(path, (time.time() - 1000, time.time() - 1000))
    flight.path.write_bytes(b"no ring")
    remember_key(archive, ring_dir)
    assert path.exists()
