"""A CPU quota that is smaller than what the service needs, set on its processes by a control group."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SLUG = "cpu_throttled"
# a twentieth of a CPU: the drill's 20 requests a second need about twice as much
QUOTA_MICROSECONDS, PERIOD_MICROSECONDS = 5_000, 100_000
# what each of the twin's requests computes: a tenth of a CPU at 20 a second, as much as all else together
TWIN_SECONDS = 0.005
BLOCK = bytes(1 << 18)
GROUPS = Path("/sys/fs/cgroup")


def quota_folder(groups: Path = GROUPS) -> Path | None:
    """Return where groups with a quota can be made, version 1 or 2; None where they cannot.

    Args:
        groups: Where control groups are mounted.
    """
    for folder, limit in ((groups / "cpu", "cpu.shares"), (groups, "cgroup.subtree_control")):
        if not (folder / limit).exists() or not os.access(folder, os.W_OK):
            continue
        if folder == groups and "cpu" not in (folder / limit).read_text(encoding="ascii").split():
            continue
        return folder
    return None


def cannot_cause() -> str:
    """Return why this machine cannot cause it; empty if it can."""
    return "" if quota_folder() else "no control group with a CPU quota can be made here; that needs root"


@contextmanager
def quota(pids: list[int], folder: Path) -> Iterator[Path]:
    """Put processes under the quota, and back into the group above.

    Args:
        pids: The processes.
        folder: Where the group is made.
    """
    group = folder / f"inferdeck-drill-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA_MICROSECONDS))
        else:
            (group / "cpu.max").write_text(f"{QUOTA_MICROSECONDS} {PERIOD_MICROSECONDS}")
        for pid in pids:
            with suppress(ProcessLookupError):
                (group / "cgroup.procs").write_text(str(pid))
        yield group
    finally:
        for left in (group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (folder / "cgroup.procs").write_text(left)
        # A process that has ended leaves its group a moment later.
        for _ in range(50):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Throttle all processes of the service.

    Args:
        stack: The drill's handle on the stack.
    """
    folder = quota_folder()
    if folder is None:
        raise RuntimeError(cannot_cause())
    with quota(stack.service_pids, folder):
        yield


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* with requests that compute much in a thread, on a CPU that is theirs.

    Args:
        app: An ASGI app.
        armed: Whether they do.
    """

    def compute() -> None:
        end = time.thread_time() + TWIN_SECONDS
        while time.thread_time() < end:
            # Native code that lets the interpreter go: the loop is not held up.
            hashlib.sha256(BLOCK).digest()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and armed():
            await asyncio.to_thread(compute)
        await app(scope, receive, send)

    return handle
