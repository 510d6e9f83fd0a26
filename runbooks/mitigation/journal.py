"""Who did what, when, why and with which result: one JSON line each, written to the disk before anything is done.

Bounded   1 MiB and one older file of the same size: about ten thousand lines, at four mitigations an hour over a month.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["Journal", "JournalError", "since"]

MOST_BYTES: Final = 1 << 20
# On a full disk the line that must stand before the help could not be written: this much is set aside for it.
RESERVE_BYTES: Final = 64 << 10


class JournalError(Exception):
    """The journal cannot be written; nothing may be done then. The text has the mend."""


class Journal:
    """The folder of the journal.

    Args:
        folder: Made (0700) when absent.
        clock: Wall clock, unix seconds.
    """

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder = folder
        self.path = folder / "journal.jsonl"
        self._reserve = folder / "reserve"
        self._clock = clock

    def prepare(self) -> None:
        """Make the folder, and set room aside for the lines of a day on which the disk is full.

        Raises:
            JournalError: If the folder cannot be made.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError as error:
            raise JournalError(f"{self.folder} cannot be made: {error.strerror}; set INFERDECK_STATE_DIR") from error
        with contextlib.suppress(OSError):
            if not self._reserve.exists():
                handle = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "wb") as file:
                    # written and not only sized: a hole takes no room
                    file.write(os.urandom(RESERVE_BYTES))

    def append(self, event: str, **said: Any) -> None:
        """Write one line and wait until it is on the disk.

        Args:
            event: intent, result, undo_intent or undo_result.
            **said: JSON values.

        Raises:
            JournalError: If it cannot be written.
        """
        line = json.dumps({"at": round(self._clock(), 3), "event": event, **said}, ensure_ascii=True) + "\n"
        self.prepare()
        try:
            self._write(line)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise JournalError(f"{self.path} cannot be written: {error.strerror}; mend its folder") from error
            self._from_reserve(line)

    def _from_reserve(self, line: str) -> None:
        self._reserve.unlink(missing_ok=True)
        try:
            self._write(line)
        except OSError as error:
            raise JournalError(
                f"{self.path} cannot be written: {error.strerror}; delete something by hand first"
            ) from error

    def _write(self, line: str) -> None:
        if self.path.exists() and self.path.stat().st_size > MOST_BYTES:
            self.path.replace(self.path.with_suffix(".jsonl.1"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.path, flags, 0o600)
        try:
            before = os.fstat(handle).st_size
            data = line.encode()
            if os.write(handle, data) < len(data):
                # half a line would make the next one unreadable too
                os.ftruncate(handle, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        finally:
            os.close(handle)

    def entries(self) -> list[dict[str, Any]]:
        """Return all lines, oldest first; one that is no line of ours is left out.

        Raises:
            JournalError: If a file cannot be read: what was done within the hour is then not known.
        """
        found: list[dict[str, Any]] = []
        for path in (self.path.with_suffix(".jsonl.1"), self.path):
            for line in _lines(path):
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict):
                        found.append(entry)
        return found

    def runs(self) -> dict[str, dict[str, Any]]:
        """Return run -> its intent, with `result` and `undo` as far as they were written."""
        runs: dict[str, dict[str, Any]] = {}
        for entry in self.entries():
            run, event = str(entry.get("run", "")), entry.get("event", "")
            if event == "intent":
                runs[run] = {**entry, "result": None, "undo": None}
            elif run in runs and event in ("result", "undo_result"):
                runs[run]["result" if event == "result" else "undo"] = entry
        return runs

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield whether no other process carries one out; the kernel frees the lock however its holder ends."""
        self.prepare()
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}; mend it or move it away") from error


def since(runs: Mapping[str, Mapping[str, Any]], moment: float) -> list[Mapping[str, Any]]:
    """Return the runs whose intent was written after a moment, unix seconds."""
    # a time that was spoilt by hand counts as recent: a limit may not be lifted that way
    return [
        run
        for run in runs.values()
        if not isinstance(at := run.get("at"), int | float) or isinstance(at, bool) or at > moment
    ]
