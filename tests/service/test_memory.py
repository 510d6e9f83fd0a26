"""A container's memory limit counts, not only the machine's memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from service.memory import Memory, available_memory

GIB = 1 << 30
MACHINE = SimpleNamespace(total=64 * GIB, available=48 * GIB)


def group(folder: Path, limit: str, held: int, idle: int = 0) -> None:
    """Write a control group's files as the kernel shows them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{held}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {idle}\nactive_file 2\n")


def found(tmp_path: Path, path: str = "/kubepods/pod1") -> Memory:
    """What is available to a process in the group *path*."""
    own = tmp_path / "own"
    own.write_text(f"0::{path}\n")
    return available_memory(lambda: MACHINE, tmp_path / "cgroup", own)


def test_the_limit_of_the_own_group_is_what_counts(tmp_path: Path) -> None:
    """Pages of files that would be given back are not held; without them a warm page cache would refuse every model."""
    group(tmp_path / "cgroup/kubepods/pod1", str(2 * GIB), 1 * GIB, GIB // 2)

    assert Memory(2 * GIB, GIB // 2, "container") == found(tmp_path)


def test_a_limit_further_up_holds_too(tmp_path: Path) -> None:
    """The group itself has no limit, the one above it has."""
    group(tmp_path / "cgroup/kubepods/pod1", "max", 1 * GIB)
    group(tmp_path / "cgroup/kubepods", str(3 * GIB), 2 * GIB)

    assert Memory(3 * GIB, 2 * GIB, "container") == found(tmp_path)


def test_inside_a_container_the_group_is_the_root(tmp_path: Path) -> None:
    """With a namespace of its own, the limit lies where the groups are mounted."""
    group(tmp_path / "cgroup", str(GIB), 0)

    assert Memory(GIB, 0, "container") == found(tmp_path, "/")


@pytest.mark.parametrize("limit", ["max", str(1 << 62), "nonsense"])
def test_without_a_limit_that_matters_the_machine_counts(tmp_path: Path, limit: str) -> None:
    """No limit, one beyond the machine, and one that cannot be read change nothing."""
    group(tmp_path / "cgroup/kubepods/pod1", limit, 0)

    assert Memory(64 * GIB, 16 * GIB) == found(tmp_path)


def test_without_control_groups_the_machine_counts(tmp_path: Path) -> None:
    """Neither file nor mount is there."""
    assert Memory(64 * GIB, 16 * GIB) == available_memory(lambda: MACHINE, tmp_path / "no", tmp_path / "none")


def test_a_group_s_path_that_leads_out_of_the_mount_ends_there(tmp_path: Path) -> None:
    """A process outside its namespace's root is told "/../other": the walk up ends instead of going on for ever."""
    assert Memory(64 * GIB, 16 * GIB) == found(tmp_path, "/../other")
