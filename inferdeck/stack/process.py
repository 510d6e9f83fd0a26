"""Processes that we started, and only those.

A process is known by its pid together with the kernel's start time: a pid alone is handed to a stranger after its
owner has gone. Each part leads a process group of its own, so that workers end with it, and carries a random token in
its environment, so that workers whose leader has gone are still told from strangers.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

__all__ = [
    "ProcessRecord",
    "StopReport",
    "group_members",
    "is_alive",
    "kernel_start_ticks",
    "kill_group",
    "log_tail",
    "start",
    "still_running",
    "stop",
]

PROC = Path("/proc")
TOKEN_VARIABLE = "INFERDECK_STACK_TOKEN"  # noqa: S105  # a mark, no secret: it opens nothing
# a part's log is rotated once at start; while it runs our parts log only changes of state
MAX_LOG_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class ProcessRecord:
    """What is written down about a started process.

    Attributes:
        name: The part's name.
        pid: Process id, which is its process group's id as well.
        start_ticks: Start time in the kernel's own count, in ticks since boot.
        token: Random mark in the environment of the process and of all that it starts.
        argv: Its command line.
        log: Path of its log file.
        started_unix: Wall clock at start, in seconds.
    """

    name: str
    pid: int
    start_ticks: int
    token: str
    argv: tuple[str, ...]
    log: str
    started_unix: float

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return asdict(self) | {"argv": list(self.argv)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ProcessRecord:
        """Read a record back.

        Raises:
            KeyError: If a field is missing.
            ValueError: If a number is none.
        """
        return cls(
            name=str(raw["name"]),
            pid=int(raw["pid"]),
            start_ticks=int(raw["start_ticks"]),
            token=str(raw["token"]),
            argv=tuple(str(part) for part in raw["argv"]),
            log=str(raw["log"]),
            started_unix=float(raw["started_unix"]),
        )


@dataclass(frozen=True)
class StopReport:
    """How a stop went: `how` is one of "gone" (was not running), "term" and "kill"."""

    name: str
    how: str
    took_seconds: float


def _stat_fields(pid: int, proc: Path) -> list[str] | None:
    """Return /proc/<pid>/stat from the state field on, or None when there is no such process."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # the command's name is in brackets and may hold brackets and blanks itself
    return text[text.rfind(")") + 2 :].split()


def kernel_start_ticks(pid: int, proc: Path = PROC) -> int | None:
    """Return when the kernel started *pid*, in ticks since boot, or None when it is not there.

    Args:
        pid: Process id.
        proc: Root of the process file system; without one (macOS) psutil's creation time in hundredths stands in.
    """
    if proc.is_dir():
        fields = _stat_fields(pid, proc)
        # field 22 of stat(5); the state is field 3 and has index 0 here
        return int(fields[19]) if fields and len(fields) > 19 else None
    try:
        return round(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return None


def is_alive(record: ProcessRecord, proc: Path = PROC) -> bool:
    """Return whether the very process of *record* still runs; a zombie and a stranger with its pid do not count.

    Args:
        record: What was written down at start.
        proc: Root of the process file system.
    """
    if kernel_start_ticks(record.pid, proc) != record.start_ticks:
        return False
    if proc.is_dir():
        fields = _stat_fields(record.pid, proc)
        return bool(fields) and fields is not None and fields[0] not in "ZX"
    try:
        return bool(psutil.Process(record.pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def group_members(record: ProcessRecord, proc: Path = PROC) -> list[int]:
    """Return the live processes that carry the record's token, the leader included.

    Args:
        record: What was written down at start.
        proc: Root of the process file system.
    """
    mark = f"{TOKEN_VARIABLE}={record.token}".encode()
    members = []
    for entry in proc.iterdir() if proc.is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # gone meanwhile, or not ours to read: then it is not ours to stop
        fields = _stat_fields(int(entry.name), proc)
        if mark in environment.split(b"\0") and fields and fields[0] not in "ZX":
            members.append(int(entry.name))
    return sorted(members)


def still_running(records: Iterable[ProcessRecord], proc: Path = PROC) -> list[int]:
    """Return the live processes of all these records, workers whose leader has gone included.

    Args:
        records: What was written down at start.
        proc: Root of the process file system.
    """
    return sorted({pid for record in records for pid in group_members(record, proc)})


def start(
    name: str,
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
) -> tuple[ProcessRecord, subprocess.Popen[bytes]]:
    """Start *argv* as the leader of a group of its own, with its output in *log*.

    Args:
        name: The part's name.
        argv: Program and arguments; no shell is involved.
        log: File that stdout and stderr are appended to, made 0600.
        env: The whole environment; ours by default.
        cwd: Working folder.
        stdin: As for `subprocess.Popen`.
        stdout: As for `subprocess.Popen`; the log by default.

    Returns:
        The record to keep, and the handle that reaps the process.

    Raises:
        OSError: If the program or a folder cannot be had.
    """
    token = secrets.token_hex(8)
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    # appended: the last words of the start before are often those that explain
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=handle if stdout is None else stdout,
            stderr=handle,
            env={**(os.environ if env is None else env), TOKEN_VARIABLE: token},
            cwd=cwd,
            # a session of its own: Ctrl-C reaches the console alone, which then stops the parts in their order
            start_new_session=True,
        )
    finally:
        os.close(handle)
    # our child cannot be reaped before we do it, so its pid is still its own here
    ticks = kernel_start_ticks(process.pid) or 0
    record = ProcessRecord(name, process.pid, ticks, token, tuple(argv), str(log), time.time())
    return record, process


def kill_group(record: ProcessRecord, number: int, proc: Path = PROC) -> bool:
    """Send signal *number* to the record's group, if it is still the record's.

    Returns:
        Whether anything was signalled.
    """
    sent = False
    if is_alive(record, proc):
        try:
            # the whole group: a leader that ends first would leave its workers on the ports
            os.killpg(record.pid, number)
            sent = True
        except ProcessLookupError:
            pass  # it ended between the look and the signal
    else:
        # the leader has gone: its id may belong to a stranger, so only marked processes are touched, one by one
        for pid in group_members(record, proc):
            try:
                os.kill(pid, number)
                sent = True
            except (ProcessLookupError, PermissionError):
                continue
    return sent


def stop(
    record: ProcessRecord,
    *,
    grace_seconds: float,
    reap: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> StopReport:
    """End the record's group: TERM, then KILL for what is left after the grace.

    Args:
        record: What was written down at start.
        grace_seconds: How long TERM may take.
        reap: Called while waiting, so that a child of ours does not stay a zombie.
        clock: Monotonic seconds.
        sleep: Waits so many seconds.
    """
    began = clock()
    if not kill_group(record, signal.SIGTERM):
        reap()
        return StopReport(record.name, "gone", clock() - began)
    # one that was stopped (SIGSTOP, Ctrl-Z) would sit on the TERM until its grace is over
    kill_group(record, signal.SIGCONT)
    while clock() - began < grace_seconds:
        reap()
        if not is_alive(record) and not group_members(record):
            # again: it may have ended since the line above, and nobody would ever collect it
            reap()
            return StopReport(record.name, "term", clock() - began)
        sleep(0.05)
    kill_group(record, signal.SIGKILL)
    # workers of a leader that went first are only visible by their mark
    for _ in range(40):
        reap()
        if not is_alive(record) and not kill_group(record, signal.SIGKILL):
            break
        sleep(0.05)
    reap()
    return StopReport(record.name, "kill", clock() - began)


def log_tail(path: Path, lines: int = 5, window_bytes: int = 8192) -> list[str]:
    """Return the last *lines* lines of a log, reading at most *window_bytes* of it; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            # from the end: a log may be megabytes long, and `status` shows five lines
            file.seek(max(0, path.stat().st_size - window_bytes))
            text = file.read(window_bytes).decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
