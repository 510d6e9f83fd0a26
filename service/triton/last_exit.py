"""What the end of a tritonserver tells: its exit code, the last lines that it wrote, and what kind of an end that was.

Measures  each end once, by the supervisor that buried it.
Source    the exit code, and what this life wrote to its log.
Error     a kind is read from the log's words; an end whose words nobody knows is "signal" or "failed" by its code.
Cost      reading the last 64 KiB of a log, once per end.
Memory    MOST_LINES lines of MOST_CHARACTERS of the last end that was no clean one; on disk the same, in one file.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

__all__ = ["KINDS", "Exit", "end_of", "kind_of", "last_lines", "write"]

# Those of CUDA first, as they are looked for in the words; then those that the code alone tells.
_WORDS: Final = (
    ("illegal_memory_access", re.compile(r"illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS", re.IGNORECASE)),
    ("out_of_memory", re.compile(r"CUDA[^\n]*out of memory|CUDA_ERROR_OUT_OF_MEMORY", re.IGNORECASE)),
    ("cuda_error", re.compile(r"CUDA (?:failure|error)|CUDA_ERROR_", re.IGNORECASE)),
)
KINDS: Final = (*(kind for kind, _ in _WORDS), "signal", "failed", "stopped", "clean")
"""Of ends: three of CUDA, by a signal, with a code other than 0, killed by its supervisor, with 0."""
MOST_LINES: Final = 40
MOST_CHARACTERS: Final = 400
_MOST_BYTES: Final = 65_536


@dataclass(frozen=True)
class Exit:
    """One end.

    Attributes:
        code: Exit code; a signal's number is negative.
        kind: One of KINDS.
        unix_seconds: When it was noticed.
        lines: The last that it wrote.
    """

    code: int
    kind: str
    unix_seconds: float
    lines: tuple[str, ...]


def kind_of(code: int, lines: Sequence[str], *, stopped: bool = False) -> str:
    """Return what kind of an end it was.

    Args:
        code: Exit code.
        lines: Its last lines.
        stopped: Whether its supervisor killed it, for another reason than what the lines say.
    """
    if stopped or code == 0:
        return "stopped" if stopped else "clean"
    told = "\n".join(lines)
    for kind, words in _WORDS:
        if words.search(told):
            return kind
    return "signal" if code < 0 else "failed"


def last_lines(log: Path, since: int) -> tuple[str, ...]:
    """Return the last lines of a log, cut to a bounded length each; none when it cannot be read.

    Args:
        log: The file.
        since: Length that it had when this life began: what others wrote before is not its.
    """
    with suppress(OSError), log.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # Cut off or begun anew meanwhile: all of it is of this life.
        file.seek(max(since if since <= size else 0, size - _MOST_BYTES))
        text = file.read(_MOST_BYTES).decode(errors="replace")
        return tuple(line[:MOST_CHARACTERS] for line in text.splitlines()[-MOST_LINES:])
    return ()


def end_of(code: int, log: Path, since: int, *, stopped: bool = False) -> Exit:
    """Return what an end tells.

    Args:
        code: Exit code.
        log: What it wrote to.
        since: Length of the log when this life began.
        stopped: Whether its supervisor killed it.
    """
    lines = last_lines(log, since)
    return Exit(code, kind_of(code, lines, stopped=stopped), time.time(), lines)


def write(path: Path, end: Exit) -> None:
    """Keep the last end in a file, 0600, for people and reports; a disk that is full loses it and nothing else."""
    new = path.with_suffix(".new")
    with suppress(OSError):
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump(asdict(end), file, indent=1)
        new.replace(path)
