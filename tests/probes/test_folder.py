from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from probes.folder import (
    FolderRefused,
    boot_id,
    locked_folder,
    prepare_folder,
    read_key,
    session_hash,
    session_hashes,
    sweep,
)


def test_a_missing_folder_is_made_private(tmp_path: Path) -> None:
    """0700, and so is the parent that comes with it."""
    prepare_folder(tmp_path / "a" / "b")

    assert [0o700, 0o700] == [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")]


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    """Session ids are personal data; the error says the mend."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)

    with pytest.raises(FolderRefused, match="chmod 700") as caught:
        prepare_folder(tmp_path / "open")
    assert caught.value.reason == "folder_not_private"


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    """In a shared place somebody else could have put it there."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(FolderRefused, match="links are not followed"):
        prepare_folder(tmp_path / "link")


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    """Also below a file, where no folder can be."""
    (tmp_path / "file").touch(0o600)

    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FolderRefused) as caught:
            prepare_folder(path)
        assert caught.value.reason == "folder_unusable"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """Even if it is private."""
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)

    with pytest.raises(FolderRefused, match="belongs to user 12345"):
        prepare_folder(tmp_path / "theirs")


def test_workers_that_make_the_key_at_once_agree(tmp_path: Path) -> None:
    """One key per folder, private, and no temporary file left."""
    keys: list[bytes] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        keys.append(read_key(tmp_path, create=True))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keys) == 8
    assert {read_key(tmp_path)} == set(keys)
    assert ["key"] == [path.name for path in tmp_path.iterdir()]
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_missing_or_damaged_key_is_an_error(tmp_path: Path) -> None:
    """A reader must not invent one: its hashes would find nothing."""
    with pytest.raises(FileNotFoundError):
        read_key(tmp_path)
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(ValueError, match="remove it and restart"):
        read_key(tmp_path)


def test_the_session_hash_is_keyed() -> None:
    """The same id has another hash in another folder; the value is BLAKE2b's, so that other tools can compute it."""
    import hashlib

    expected = int.from_bytes(hashlib.blake2b(b"abc", key=b"k" * 32, digest_size=8).digest(), "big")
    assert expected == session_hash(b"k" * 32, b"abc")
    assert session_hash(b"k" * 32, b"abc") != session_hash(b"l" * 32, b"abc")


def test_the_boot_id_is_32_digits_or_zeros(tmp_path: Path) -> None:
    """Systems that have none do not stop the service."""
    (tmp_path / "boot").write_text("0b5d3a2c-1111-2222-3333-444455556666\n")

    assert boot_id(tmp_path / "boot") == "0b5d3a2c111122223333444455556666"
    assert boot_id(tmp_path / "none") == "0" * 32


def test_the_folder_s_lock_is_waited_for_and_then_gone_without(tmp_path: Path) -> None:
    """A worker that hangs with the lock does not keep others from starting."""
    with locked_folder(tmp_path) as first, locked_folder(tmp_path, patience_s=0.05) as second:
        assert (True, False) == (first, second)
    with locked_folder(tmp_path) as third:
        assert third


def test_old_rings_of_dead_workers_are_swept_beyond_a_number(tmp_path: Path) -> None:
    """The newest stay, and so does what is no ring."""
    for number in range(6):
        path = tmp_path / f"{number}.ring"
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / "half.new").touch()
    os.utime(tmp_path / "half.new", (0, 0))
    (tmp_path / "young.new").touch()
    (tmp_path / "key").touch()

    assert sweep(tmp_path, keep=2) == 4
    assert ["4.ring", "5.ring", "key", "young.new"] == sorted(path.name for path in tmp_path.iterdir())


def test_a_generated_session_is_found_by_the_trace_id_that_it_is() -> None:
    """32 small hex digits may be one, or may have come from a client: its keyed hash counts too."""
    key = b"k" * 32
    generated = b"%032x" % (5 << 64 | 7)

    assert [session_hash(key, generated), 7] == session_hashes(key, generated)
    assert [session_hash(key, generated.upper() + b"A")] == session_hashes(key, generated.upper() + b"A")
    assert [session_hash(key, b"")] == session_hashes(key, b"")
