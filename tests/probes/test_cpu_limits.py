"""What control groups tell of a CPU quota, in both versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probes.cpu_limits import CpuLimits


def group(folder: Path, periods: int, throttled: int) -> None:
    """Write a group's cpu.stat."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.stat").write_text(f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time 5\n")


def told(limits: CpuLimits) -> tuple[int, int] | None:
    """Return periods and throttled ones."""
    found: dict[str, Any] | None = limits.reading().get("cpu_limit")
    return None if found is None else (found["periods"], found["throttled"])


@pytest.mark.parametrize(
    ("line", "mount"),
    [("0::/app", ""), ("1:cpu:/app", "cpu"), ("4:cpu,cpuacct:/app", "cpu,cpuacct"), ("4:cpu,cpuacct:/app", "cpu")],
)
def test_growth_since_the_first_look_is_told_in_both_versions(tmp_path: Path, line: str, mount: str) -> None:
    """What the group counted before is somebody else's."""
    (tmp_path / "cgroup").write_text(f"{line}\n7:memory:/other\n")
    group(tmp_path / mount / "app", 100, 50)
    limits = CpuLimits(tmp_path / "cgroup", tmp_path)

    assert (0, 0) == told(limits)
    group(tmp_path / mount / "app", 110, 58)
    assert (10, 8) == told(limits)
    group(tmp_path / mount / "app", 120, 58)
    assert (20, 8) == told(limits)


def test_of_nested_groups_the_one_that_is_throttled_most_counts(tmp_path: Path) -> None:
    """A pod's quota above that of its container."""
    (tmp_path / "cgroup").write_text("0::/pod/container\n")
    limits = CpuLimits(tmp_path / "cgroup", tmp_path)
    for periods, inner, outer in ((10, 0, 0), (20, 1, 9)):
        group(tmp_path / "pod/container", periods, inner)
        group(tmp_path / "pod", periods, outer)
        limits.reading()

    assert (10, 9) == told(limits)


def test_a_process_that_is_moved_starts_anew_and_loses_nothing(tmp_path: Path) -> None:
    """Counts never fall: the exporter takes them for cumulative."""
    (tmp_path / "cgroup").write_text("0::/a\n")
    limits = CpuLimits(tmp_path / "cgroup", tmp_path)
    group(tmp_path / "a", 100, 100)
    limits.reading()
    group(tmp_path / "a", 110, 105)
    limits.reading()
    (tmp_path / "cgroup").write_text("0::/b\n")
    group(tmp_path / "b", 5, 5)

    assert (10, 5) == told(limits)
    group(tmp_path / "b", 8, 6)
    assert (13, 6) == told(limits)


@pytest.mark.parametrize("content", [None, "", "nr_periods 0\nnr_throttled 0\n", "usage_usec 5\n", "nr_periods x\n"])
def test_without_a_quota_nothing_is_told(tmp_path: Path, content: str | None) -> None:
    """No file, no quota, or another form: absent, never 0."""
    (tmp_path / "cgroup").write_text("0::/app\n")
    if content is not None:
        (tmp_path / "app").mkdir()
        (tmp_path / "app/cpu.stat").write_text(content)

    assert {} == CpuLimits(tmp_path / "cgroup", tmp_path).reading()
    assert {} == CpuLimits(tmp_path / "none", tmp_path).reading()
