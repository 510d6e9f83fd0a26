"""An archiver on clocks that tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits

START = 1_700_000_000_000_000_000


class Clock:
    """Monotonic seconds and nanoseconds since 1970 that move only when told."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.unix_ns = START

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
        self.unix_ns += int(seconds * 1e9)


@pytest.fixture
def clock() -> Clock:
    """A clock at a fixed moment."""
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the segments go; it is not there yet."""
    return tmp_path / "state" / "archive"


@pytest.fixture
def archiver(ring_dir: Path, folder: Path, clock: Clock) -> Iterator[Callable[..., Archiver]]:
    """Make archivers; `archiver(limits=..., write=...)`, each with everything closed at the end."""
    made: list[Archiver] = []

    def make(limits: Limits | None = None, **handles: Any) -> Archiver:
        one = Archiver(
            ring_dir,
            folder,
            limits or Limits(),
            clock=lambda: clock.seconds,
            now_unix_ns=lambda: clock.unix_ns,
            **handles,
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one._close(list(one._rings))
