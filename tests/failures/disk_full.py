"""The state folder lies on a small disk, and somebody else's file takes the last of its room."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SLUG = "disk_full"
SIZE_BYTES = 8 << 20
# failures.md: the healthy twin's disk
TWIN_USED_SHARE = 0.8
# Written by Prometheus and Alertmanager, which must be able to see the failure, or by the drill itself: kept elsewhere.
KEPT = ("prometheus", "alertmanager", "logs", "run")


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Move the state folder to a disk of 8 MiB and fill that.

    Args:
        stack: The drill's handle on the stack.
    """
    with small_disk(stack.state_dir):
        fill(stack.state_dir / "core.dump", None)
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Move the state folder to the same disk, and leave a fifth of it free.

    Args:
        stack: The drill's handle on the stack.
    """
    with small_disk(stack.state_dir):
        used = SIZE_BYTES - os.statvfs(stack.state_dir).f_bavail * os.statvfs(stack.state_dir).f_frsize
        fill(stack.state_dir / "core.dump", int(SIZE_BYTES * TWIN_USED_SHARE) - used)
        yield


def cannot_cause() -> str | None:
    """Return why this cannot be caused here, None when it can: only root may mount, and not in every container."""
    if os.geteuid() != 0:
        return "it mounts a small disk, which takes root"
    try:
        with tempfile.TemporaryDirectory() as folder, small_disk(Path(folder)):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"it mounts a small disk, which is refused here ({type(error).__name__})"


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Put a small disk over a folder, with what lies there, while the body runs.

    Args:
        folder: The folder; those of `KEPT` stay where they are.
    """
    with ExitStack() as undo:
        kept = {}
        for name in KEPT:
            if (folder / name).is_dir():
                # by descriptor: once the disk is mounted, no path leads to what it covers
                kept[name] = os.open(folder / name, os.O_RDONLY | os.O_DIRECTORY)
                undo.callback(os.close, kept[name])
        files = [path for path in folder.iterdir() if path.name not in KEPT]
        covered = {path.name: path.read_bytes() for path in files if path.is_file()}
        folders = [path.name for path in files if path.is_dir()]
        mount("-t", "tmpfs", "-o", f"size={SIZE_BYTES},mode=0700", "tmpfs", str(folder))
        undo.callback(unmount, folder)
        for name, content in covered.items():
            (folder / name).write_bytes(content)
        for name in folders:
            (folder / name).mkdir(mode=0o700)
        for name, descriptor in kept.items():
            (folder / name).mkdir(mode=0o700)
            mount("--no-canonicalize", "--bind", f"/proc/self/fd/{descriptor}", str(folder / name), keep=descriptor)
            undo.callback(unmount, folder / name)
        yield


def mount(*arguments: str, keep: int | None = None) -> None:
    """Mount as the arguments of mount tell; *keep* is a descriptor that it needs."""
    argv = ["mount", *arguments]
    subprocess.run(argv, check=True, capture_output=True, pass_fds=() if keep is None else (keep,))


def unmount(folder: Path) -> None:
    """Take a mount away, now or when the last of its open files is closed."""
    argv = ["umount", "--lazy", str(folder)]
    subprocess.run(argv, check=True, capture_output=True)


def fill(path: Path, size: int | None) -> None:
    """Write a file of so many bytes, or until nothing more fits.

    Args:
        path: The file.
        size: Bytes; None for all that there is room for.
    """
    page = bytes(4096)
    with path.open("wb", buffering=0) as file:
        try:
            while size is None or file.tell() < size:
                file.write(page)
        except OSError:
            # full: what was wanted
            pass
