"""Processes are known by pid and start time, and stopped without ever touching a stranger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inferdeck.stack.process import (
    ProcessRecord,
    group_members,
    is_alive,
    kernel_start_ticks,
    kill_group,
    log_tail,
    start,
    still_running,
    stop,
)

SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")
DEAF = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
)
PARENT_CODE = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("up", flush=True)
time.sleep(60)
"""
PARENT = (sys.executable, "-c", PARENT_CODE)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Return whether *condition* came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def started(argv: tuple[str, ...], tmp_path: Path) -> tuple[ProcessRecord, subprocess.Popen[bytes]]:
    """Start *argv* and wait for its first word."""
    log = tmp_path / "part.log"
    record, child = start("part", argv, log=log)
    assert wait_until(lambda: log_tail(log) == ["up"])
    return record, child


def test_a_started_process_is_alive_and_stops_on_term(tmp_path: Path) -> None:
    """A part leads its own group, is alive by its record, and TERM ends it."""
    record, child = started(SLEEPER, tmp_path)

    assert is_alive(record)
    assert record.pid == os.getpgid(record.pid)
    assert record == ProcessRecord.from_json(record.to_json())

    report = stop(record, grace_seconds=5, reap=child.poll)

    assert "term" == report.how
    assert -signal.SIGTERM == child.returncode
    assert not is_alive(record)


def test_a_stopped_process_need_not_be_killed(tmp_path: Path) -> None:
    """SIGSTOP, or Ctrl-Z, does not make `down` wait for the whole grace."""
    record, child = started(SLEEPER, tmp_path)
    os.kill(child.pid, signal.SIGSTOP)

    report = stop(record, grace_seconds=20, reap=child.poll)

    assert "term" == report.how
    assert -signal.SIGTERM == child.returncode


def test_a_child_deaf_to_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    """KILL follows when TERM is ignored."""
    record, child = started(DEAF, tmp_path)

    report = stop(record, grace_seconds=0.3, reap=child.poll)

    assert "kill" == report.how
    assert -signal.SIGKILL == child.returncode


def test_a_reused_pid_is_never_signalled(tmp_path: Path) -> None:
    """A live process with the recorded pid but another start time is a stranger."""
    record, child = started(SLEEPER, tmp_path)
    stranger = replace(record, start_ticks=record.start_ticks - 1, token="0" * 16)

    assert not is_alive(stranger)
    assert "gone" == stop(stranger, grace_seconds=0.2).how
    assert child.poll() is None

    stop(record, grace_seconds=5, reap=child.poll)


def test_a_zombie_counts_as_gone(tmp_path: Path) -> None:
    """An ended child that nobody has reaped is not alive."""
    record, child = start("part", (sys.executable, "-c", "pass"), log=tmp_path / "part.log")

    assert wait_until(lambda: not is_alive(record))
    assert record.start_ticks == kernel_start_ticks(record.pid)
    assert 0 == child.wait()


def test_workers_of_a_dead_leader_are_found_by_their_mark(tmp_path: Path) -> None:
    """When the leader has gone, its workers are still ended, told by the token and not by the group's number."""
    record, child = started(PARENT, tmp_path)
    assert wait_until(lambda: 2 == len(group_members(record)))
    os.kill(record.pid, signal.SIGKILL)
    child.wait()
    assert wait_until(lambda: 1 == len(group_members(record)))

    report = stop(record, grace_seconds=5)

    assert "term" == report.how
    assert [] == group_members(record)


def test_a_child_that_ends_between_two_looks_is_reaped(tmp_path: Path) -> None:
    """It was running when it was polled and had ended when it was looked at: no zombie is left, in any order."""
    record, child = started(SLEEPER, tmp_path)
    polled: list[int | None] = []

    def reap() -> None:
        polled.append(child.poll())
        # the worst moment: right after the poll
        assert wait_until(lambda: not is_alive(record))

    report = stop(record, grace_seconds=5, reap=reap)

    assert ("term", -signal.SIGTERM) == (report.how, polled[-1])


def test_what_still_runs_is_counted_with_the_workers_of_dead_leaders(tmp_path: Path) -> None:
    """Two processes; one when the leader was killed; none when all are ended."""
    record, child = started(PARENT, tmp_path)
    assert wait_until(lambda: 2 == len(still_running([record])))
    os.kill(record.pid, signal.SIGKILL)
    child.wait(10)

    alone = still_running([record, replace(record, token="0" * 16)])
    stop(record, grace_seconds=5, reap=child.poll)

    assert ([record.pid] != alone, 1, []) == (True, len(alone), still_running([record]))


def test_kill_group_reaches_all_workers(tmp_path: Path) -> None:
    """A signal to the group ends leader and workers at once."""
    record, child = started(PARENT, tmp_path)
    assert wait_until(lambda: 2 == len(group_members(record)))

    assert kill_group(record, signal.SIGKILL)

    child.wait()
    assert wait_until(lambda: [] == group_members(record))
    assert not kill_group(record, signal.SIGKILL)


def test_start_ticks_survive_odd_command_names(tmp_path: Path) -> None:
    """Brackets and blanks in a command's name do not shift the fields of stat(5)."""
    folder = tmp_path / "42"
    folder.mkdir()
    fields = " ".join(["S", *(str(number) for number in range(4, 53))])
    (folder / "stat").write_text(f"42 (a) b) c) {fields}\n")

    assert 22 == kernel_start_ticks(42, tmp_path)
    assert kernel_start_ticks(43, tmp_path) is None


def test_logs_are_private_and_their_tail_is_bounded(tmp_path: Path) -> None:
    """A log is 0600; its tail reads a bounded window and skips empty lines."""
    record, child = started(SLEEPER, tmp_path)
    stop(record, grace_seconds=5, reap=child.poll)
    long = tmp_path / "long.log"
    long.write_text("x\n\n" * 10_000 + "last\n")

    assert 0o600 == (tmp_path / "part.log").stat().st_mode & 0o777
    assert ["x", "last"] == log_tail(long, 2)
    assert [] == log_tail(tmp_path / "none.log")


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    """A program that is not there raises, and starts nothing."""
    with pytest.raises(FileNotFoundError):
        start("part", ("/nonexistent/program",), log=tmp_path / "part.log")
