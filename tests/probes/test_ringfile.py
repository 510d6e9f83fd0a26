from __future__ import annotations

import errno
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.folder import FolderRefused
from probes.reader import RingFile, list_rings
from probes.ringfile import OwnedRing, open_anonymous, open_ring
from probes.settings import Identity, RecorderSettings

MOUNT, UMOUNT = shutil.which("mount") or "mount", shutil.which("umount") or "umount"
SMALL = RecorderSettings(ring_rows=64, open_slots=4)


def make(folder: Path, service: str = "test", settings: RecorderSettings = SMALL) -> OwnedRing:
    """Open a ring in that folder."""
    return open_ring(folder, service, Identity(), settings, lambda _: None)


def test_the_file_is_private_complete_and_fully_allocated(tmp_path: Path) -> None:
    """0600; every byte has its block, so that no write to the mapping can fail."""
    ring = make(tmp_path / "r")
    assert ring.path is not None
    info = ring.path.stat()
    ring.close()

    assert 0o600 == stat.S_IMODE(info.st_mode)
    assert info.st_size == ring.writer.layout.total
    assert info.st_blocks * 512 >= info.st_size


def test_the_name_is_boot_id_and_random(tmp_path: Path) -> None:
    """In containers every pid is 1: names must not depend on it."""
    rings = [make(tmp_path / "r") for _ in range(2)]
    for ring in rings:
        ring.close()
    names = [path.stem.split("-") for path in list_rings(tmp_path / "r")]

    assert [[8, 16], [8, 16]] == [[len(part) for part in name] for name in names]
    assert 2 == len({name[1] for name in names})


def test_workers_have_the_lowest_free_number_of_their_service(tmp_path: Path) -> None:
    """A replacement takes the number of the dead; two services in one folder count apart."""
    first, second, other = make(tmp_path / "r"), make(tmp_path / "r"), make(tmp_path / "r", "other")
    first.close()
    third = make(tmp_path / "r")
    workers = []
    for ring in (first, second, other, third):
        with RingFile(ring.path or "") as reader:
            workers.append((reader.header.service, reader.header.worker))
        ring.close()

    assert [("test", 0), ("test", 1), ("other", 0), ("test", 0)] == workers


def test_two_services_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    """A file each; rows of one are not in the other."""
    rings = [make(tmp_path / "r", service) for service in ("a", "b")]
    for count, ring in enumerate(rings, 1):
        for _ in range(count):
            ring.writer.commit(ring.writer.plan.template.copy(), ring.writer.scratch)
    heads = {}
    for path in list_rings(tmp_path / "r"):
        with RingFile(path) as reader:
            heads[reader.header.service] = reader.head()
    for ring in rings:
        ring.close()

    assert {"a": 1, "b": 2} == heads


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The limit on file size fails the allocation as a full disk does, before anything is mapped."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(FolderRefused) as caught:
            make(tmp_path / "r")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert ("disk_full", errno.EFBIG) == (caught.value.reason, getattr(caught.value.__cause__, "errno", None))
    assert ["key"] == [path.name for path in (tmp_path / "r").iterdir()]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Callable[[], Path]:
    """Mount a file system of 300 KB; skip where that is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = [MOUNT, "-t", "tmpfs", "-o", "size=300k,mode=0700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    return lambda: place


def test_a_really_full_disk_is_told(tiny_disk: Callable[[], Path]) -> None:
    """ENOSPC from a small tmpfs."""
    place = tiny_disk()
    try:
        with pytest.raises(FolderRefused) as caught:
            make(place)
        left = [path.name for path in place.iterdir()]
    finally:
        subprocess.run([UMOUNT, str(place)], check=True)

    assert "disk_full" == caught.value.reason
    assert ["key"] == left


def test_a_damaged_key_is_told(tmp_path: Path) -> None:
    """Without its key no session can be found: no file rather than a useless one."""
    (tmp_path / "r").mkdir(mode=0o700)
    (tmp_path / "r" / "key").write_bytes(b"")

    with pytest.raises(FolderRefused, match="restart the service") as caught:
        make(tmp_path / "r")
    assert "file_unusable" == caught.value.reason


def test_an_anonymous_ring_takes_rows_without_a_file() -> None:
    """The request path is the same; the memory is small."""
    ring = open_anonymous("test", Identity(), RecorderSettings(), lambda _: None, "disk_full")
    for _ in range(200):
        ring.writer.commit(ring.writer.plan.template.copy(), ring.writer.scratch)
    ring.close()

    assert (200, None, "disk_full") == (ring.writer.head, ring.path, ring.loss)
    assert ring.writer.layout.total < 1 << 20


def test_a_child_process_does_not_hold_the_lock(tmp_path: Path) -> None:
    """What a service starts must not make it look alive after its death."""
    ring = make(tmp_path / "r")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with RingFile(ring.path or "") as reader:
            ring.close()
            alive = reader.owner_alive()
    finally:
        child.communicate(b"\n", timeout=30)

    assert not alive
