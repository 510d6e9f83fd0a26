"""Messages from files: a folder of `*.jsonl`, or one file; for users without Kafka, and through the same code.

A line is a message: the JSON object itself, or `{"headers": {...}, "value": {...}}` where it comes with headers. Files
are followed as they grow and read in the order of their names; a line counts once its line end is there. A file that
became shorter than what was read of it was begun anew, and is read from its beginning.

Bounded   lines are read up to the contract's size and passed over beyond; one open file at a time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from service.stream.message import Header, Message
from service.stream.source import Backlog, SourceFailed

__all__ = ["FileSource"]

_PAUSE_SECONDS: Final = 0.05
_CHUNK: Final = 1 << 20
# Before the first message was read; a message of the contract has some 150 bytes.
_USUAL_BYTES: Final = 150.0


class FileSource:
    """Follows files.

    Args:
        path: A folder, or one file; it may come later.
        message_bytes: Most bytes of a line that are held.
        sleep: Waits so many seconds.
    """

    def __init__(self, path: Path, message_bytes: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self._path, self._most, self._sleep = path, message_bytes, sleep
        self._positions: dict[str, int] = {}
        self._gone: list[str] = []
        self._unended: dict[str, int] = {}  # size of a file whose last line has no end yet; parts of `_positions`
        self._mean = _USUAL_BYTES

    def start(self, positions: Mapping[str, int], back_to_ns: int) -> None:
        """Begin where the positions say; files without one from their beginning."""
        del back_to_ns
        if self._path.exists() and not os.access(self._path, os.R_OK):
            raise SourceFailed(f"{self._path} cannot be read; let this user read it")
        self._positions = dict(positions)

    def poll(self, most: int, wait_seconds: float) -> list[Message]:
        """Return the next lines."""
        until = time.monotonic() + wait_seconds
        while True:
            found = self._read(most)
            if found or time.monotonic() >= until:
                return found
            self._sleep(_PAUSE_SECONDS)

    def gone(self) -> Sequence[str]:
        """Return the files that were removed."""
        there = {path.name for path in self._files()}
        self._gone = [name for name in self._positions if name not in there]
        for name in self._gone:
            del self._positions[name]
            self._unended.pop(name, None)
        return self._gone

    def backlog(self) -> Backlog:
        """Return what waits: bytes over the mean size of a message."""
        behind, waiting = set(), 0
        for path in self._files():
            size = _size(path)
            ahead = size - self._positions.get(path.name, 0)
            # half a line of a writer that was killed is nothing that could be read
            if ahead > 0 and self._unended.get(path.name) != size:
                behind.add(path.name)
                waiting += ahead
        return Backlog(self._path.exists(), waiting / self._mean, frozenset(behind) if self._path.exists() else None)

    def acknowledge(self, positions: Mapping[str, int]) -> None:
        """Nobody else is told."""

    def close(self) -> None:
        """Nothing is held open."""

    def _files(self) -> list[Path]:
        if self._path.is_dir():
            return sorted(path for path in self._path.glob("*.jsonl") if path.is_file())
        return [self._path] if self._path.is_file() else []

    def _read(self, most: int) -> list[Message]:
        found: list[Message] = []
        for path in self._files():
            if len(found) >= most:
                break
            position = self._positions.get(path.name, 0)
            size = _size(path)
            if size < position:
                # begun anew
                position = self._positions[path.name] = 0
            if size > position:
                found += self._lines(path, position, most - len(found))
        return found

    def _lines(self, path: Path, position: int, most: int) -> list[Message]:
        found: list[Message] = []
        try:
            with path.open("rb") as file:
                file.seek(position)
                while len(found) < most:
                    line = file.readline(self._most + 1)
                    whole = line.endswith(b"\n")
                    length = len(line) if whole else _rest(file, len(line), self._most)
                    if length is None:
                        if line:
                            self._unended[path.name] = file.seek(0, os.SEEK_END)
                        break
                    position += length
                    if line.strip() or not whole:
                        found.append(_message(path.name, position, line if whole else None, length))
        except FileNotFoundError:
            return found
        if found:
            spent = position - self._positions.get(path.name, 0)
            self._mean += 0.1 * (spent / len(found) - self._mean)
        self._positions[path.name] = position
        return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _rest(file: IO[bytes], begun: int, most: int) -> int | None:
    """Pass over the rest of a line that is too long; return its whole length, None when its end is not there yet.

    Args:
        file: Behind the line's beginning.
        begun: Bytes of it that were read.
        most: A shorter line without an end is one that is being written.
    """
    if begun <= most:
        return None
    length = begun
    while chunk := file.readline(_CHUNK):
        length += len(chunk)
        if chunk.endswith(b"\n"):
            return length
    return None


def _message(name: str, position: int, line: bytes | None, length: int) -> Message:
    if line is None:
        return Message(name, position, None, length)
    value = line.strip()
    if value.startswith(b'{"headers"'):
        return _with_headers(name, position, value)
    return Message(name, position, value, len(value))


def _with_headers(name: str, position: int, line: bytes) -> Message:
    """Return the message of an envelope; a line that is none is a message as it stands, and will be refused."""
    try:
        document = json.loads(line)
        headers: list[Header] = [(str(key), str(value).encode()) for key, value in document["headers"].items()]
        value = json.dumps(document["value"], ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return Message(name, position, line, len(line))
    return Message(name, position, value, len(value), headers)
