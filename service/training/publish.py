"""Putting a folder of files in place so that a reader sees the old model or the new one, never half of either."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Busy", "check_target", "publish_folder", "training_lock"]


class Busy(RuntimeError):  # noqa: N818 - says what is wrong
    """Another process has held the lock for longer than a training takes."""


def check_target(folder: Path, mark: str) -> None:
    """Refuse a target that holds something else than a model: publishing would replace it.

    Args:
        folder: Where the files shall go.
        mark: Name of the file by which a folder of ours is known.

    Raises:
        FileExistsError: If *folder* is no folder, or holds files but not *mark*.
    """
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / mark).is_file()):
        raise FileExistsError(f"{folder} holds something else than a model; choose another folder")


@contextmanager
def training_lock(
    folder: Path,
    waiting: Callable[[], None],
    timeout_seconds: float = 300.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the lock beside *folder*; a process that dies lets go of it.

    Args:
        folder: The folder that is about to be written; its parent is made when missing.
        waiting: Called once when another process holds the lock.
        timeout_seconds: How long to wait for it; a training takes about 15 s on two cores.
        clock: Monotonic seconds.
        sleep: Pauses between tries.

    Raises:
        Busy: If it is still held after *timeout_seconds*.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f".{folder.name}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        deadline = clock() + timeout_seconds
        told = False
        while not _try_lock(descriptor):
            if clock() >= deadline:
                raise Busy(f"another process held {path} for {timeout_seconds:.0f} s; end it and try again")
            if not told:
                waiting()
                told = True
            sleep(0.2)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def publish_folder(folder: Path, files: Mapping[str, bytes], move: Callable[[Path, Path], None] = os.rename) -> None:
    """Write the files (0600) into a new folder (0700) beside *folder* and move it into place.

    Call it under `training_lock`: what an earlier, killed call left behind is removed.

    Args:
        folder: Final place; an older model there is replaced.
        files: Contents by file name.
        move: Renames a folder.
    """
    prefix = f".{folder.name}.new-"
    aside = folder.parent / f".{folder.name}.old"
    for leftover in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover)
    fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        for name, content in files.items():
            descriptor = os.open(fresh / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _sync(fresh)
        if folder.exists():
            # A folder cannot be renamed over a full one. Between the two renames there is no model for a moment, and if
            # the process dies there, the old one is found aside and removed by the next training.
            if aside.exists():
                shutil.rmtree(aside)
            move(folder, aside)
        move(fresh, folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        if aside.exists() and not folder.exists():
            move(aside, folder)
        raise
    if aside.exists():
        shutil.rmtree(aside)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
