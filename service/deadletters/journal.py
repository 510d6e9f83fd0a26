"""Lines of JSON on disk, bounded, written by a thread of its own: what hands them over never waits.

Bounds: `places` documents wait in memory; files of `file_bytes` each, `total_bytes` in the folder over all processes
(the oldest file goes first). A file belongs to one process, which only ever adds whole lines to it: whoever is killed
in the middle of one loses that line alone, and readers pass over it. A full disk loses what is new and nothing that is
written; how much was lost is the next line that can be written.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["Journal"]

Document = Mapping[str, Any]
_SHUTDOWN_SECONDS: Final = 2.0


class Journal:
    """One process's end of a folder of lines; the thread starts with the first document, hence after any fork.

    Args:
        folder: Where the files are; made when it is needed, 0700.
        name: First part of the files' names.
        file_bytes: Most bytes of one file.
        total_bytes: Most bytes of all files of this name.
        places: Documents that may wait; one more is not taken.
        clock: Unix nanoseconds, for the files' names.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        file_bytes: int = 1024 * 1024,
        total_bytes: int = 16 * 1024 * 1024,
        places: int = 256,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder, self._name, self._clock = folder, name, clock
        self._total_bytes = total_bytes
        self._file_bytes = min(file_bytes, total_bytes)
        self._waiting: queue.Queue[Callable[[], Document | None] | None] = queue.Queue(places)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._file: int | None = None
        self._size = 0
        self._untold = 0
        self.lost = 0

    def put(self, make: Callable[[], Document | None]) -> bool:
        """Hand a document over; never waits.

        Args:
            make: Returns it, or None for nothing to write; called in the writer's thread.

        Returns:
            False when there was no room.
        """
        try:
            self._waiting.put_nowait(make)
        except queue.Full:
            return False
        if self._thread is None:
            self._start()
        return True

    def write(self, document: Document) -> bool:
        """Write a document now, in this thread; for who may wait, and never beside `put`.

        Returns:
            False when it could not be written; what was lost is told by the next one that can be.
        """
        before = self.lost
        self._write_one(lambda: document)
        return self.lost == before

    def close(self) -> None:
        """Write what waits, within two seconds, and end."""
        thread = self._thread
        if thread is None:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            return
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=_SHUTDOWN_SECONDS)
        thread.join(_SHUTDOWN_SECONDS)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"journal-{self._name}", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (make := self._waiting.get()) is not None:
            self._write_one(make)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write_one(self, make: Callable[[], Document | None]) -> None:
        try:
            document = make()
            if document is not None:
                self._tell_losses()
                self._append(document)
        except Exception:  # noqa: BLE001  whatever a document or the disk does, the next one gets its turn
            self.lost += 1
            self._untold += 1

    def _tell_losses(self) -> None:
        if self._untold:
            self._append({"lost": self._untold})
            self._untold = 0

    def _append(self, document: Document) -> None:
        line = json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        file = self._open_for(len(line))
        try:
            written = os.write(file, line)
            if written != len(line):
                raise OSError(f"{written} of {len(line)} bytes written")
        except OSError:
            # Half a line would spoil the next one.
            with contextlib.suppress(OSError):
                os.ftruncate(file, self._size)
            raise
        self._size += len(line)

    def _open_for(self, length: int) -> int:
        """Return a file with room for a line; a file that somebody has removed is left for a new one."""
        if self._file is not None:
            if self._size + length <= self._file_bytes and os.fstat(self._file).st_nlink:
                return self._file
            os.close(self._file)
            self._file = None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._prune()
        path = self._folder / f"{self._name}-{self._clock():020d}-{secrets.token_hex(4)}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._size = 0
        return self._file

    def _prune(self) -> None:
        """Remove the oldest files until one more fits."""
        found = sorted(self._folder.glob(f"{self._name}-*.jsonl"))
        sizes = []
        for path in found:
            try:
                sizes.append(path.stat().st_size)
            except FileNotFoundError:
                # Another worker was quicker.
                sizes.append(0)
        for path, size in zip(found, list(sizes), strict=True):
            if sum(sizes) + self._file_bytes <= self._total_bytes:
                return
            path.unlink(missing_ok=True)
            sizes.remove(size)
