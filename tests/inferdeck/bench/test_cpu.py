"""CPU seconds from the kernel's counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.bench.cpu import busy_seconds, process_seconds, total_seconds


def write(path: Path, text: str) -> None:
    """Write a file of a made-up /proc."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_the_threads_of_a_process_are_added_up(tmp_path: Path) -> None:
    """Nanoseconds of all threads, not of the first one alone."""
    write(tmp_path / "7" / "task" / "7" / "schedstat", "1500000000 20 3\n")
    write(tmp_path / "7" / "task" / "8" / "schedstat", "250000000 0 1\n")
    write(tmp_path / "9" / "task" / "9" / "schedstat", "1000000000 0 1\n")

    assert 1.75 == process_seconds(7, tmp_path)
    assert 2.75 == total_seconds([7, 9], tmp_path)


def test_a_process_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """A missing process is not one that used no time."""
    with pytest.raises(ProcessLookupError, match="no process 7"):
        process_seconds(7, tmp_path)


def test_busy_time_includes_what_the_hypervisor_took(tmp_path: Path) -> None:
    """User, nice, system, irq, softirq and steal are busy; idle and iowait are not; guest time is in user already."""
    write(tmp_path / "stat", "cpu  100 20 30 4000 500 6 7 8 90 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n")

    assert 1.71 == busy_seconds(tmp_path, ticks_per_second=100)
