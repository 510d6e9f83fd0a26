from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exporters.disk import free_space, write_error_reason


def disk(blocks: int, free: int, available: int) -> Any:
    """Return what statvfs says about a file system of 4 kB blocks."""
    return SimpleNamespace(f_frsize=4096, f_blocks=blocks, f_bfree=free, f_bavail=available)


def test_blocks_kept_for_root_count_as_used() -> None:
    """As df has it: 100 blocks, 50 of them in use, 10 more that only root may take."""
    found = free_space({"state": Path("/state")}, lambda _folder: disk(100, 50, 40))

    assert found == {
        "runtime_disk_free_bytes": {("state",): 40 * 4096.0},
        "runtime_disk_free_ratio": {("state",): 40 / 90},
    }


def test_a_full_disk_has_nothing_free_and_each_folder_its_own_disk() -> None:
    """Zero is a value: it is what the alert waits for."""
    disks = {Path("/state"): disk(100, 0, 0), Path("/rows"): disk(100, 100, 100)}

    found = free_space({"state": Path("/state"), "rows": Path("/rows")}, disks.__getitem__)

    assert found["runtime_disk_free_ratio"] == {("state",): 0.0, ("rows",): 1.0}


def test_what_is_not_known_is_absent_and_not_zero(tmp_path: Path) -> None:
    """A folder that is not there yet, and a file system without a size, would else look full."""
    assert free_space({"rows": tmp_path / "nowhere"})["runtime_disk_free_ratio"] == {}
    assert free_space({"rows": tmp_path}, lambda _folder: disk(0, 0, 0))["runtime_disk_free_bytes"] == {}


def test_a_real_folder_has_figures(tmp_path: Path) -> None:
    """What the kernel says is understood."""
    found = free_space({"state": tmp_path})

    assert 0.0 <= found["runtime_disk_free_ratio"][("state",)] <= 1.0


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EROFS, "unwritable"),
        (errno.EACCES, "unwritable"),
    ],
)
def test_a_failed_write_is_counted_by_why(number: int, word: str) -> None:
    """Only the kernel's own words for a full disk say that it is full."""
    assert write_error_reason(OSError(number, "x")) == word
