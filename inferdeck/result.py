"""One shape for every verb's result: payload, version, commit, started, took_s."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inferdeck.version import commit, version

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Outcome", "Stopwatch", "iso_utc", "to_json"]


def iso_utc(unix_seconds: float) -> str:
    """Return *unix_seconds* as an ISO 8601 time in UTC with milliseconds."""
    # milliseconds: enough to be compared with logs, and short enough to be read
    stamp = datetime.fromtimestamp(unix_seconds, tz=UTC)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.") + f"{stamp.microsecond // 1000:03d}Z"


@dataclass(frozen=True)
class Outcome:
    """What a verb found: numbers for machines, a way to show them to people, and the exit code.

    Attributes:
        payload: The verb's part of the result, as `inferdeck/schemas/<verb>.schema.json` describes it.
        code: 0 done, 1 a finding or a miss.
        show: Draws the payload on a terminal; None prints nothing.
    """

    payload: dict[str, Any]
    code: int = 0
    show: Callable[[Console], None] | None = None


@dataclass
class Stopwatch:
    """Times one verb; `stamp` adds what every result has."""

    clock: Callable[[], float] = time.time
    tick: Callable[[], float] = time.monotonic
    _started: float = field(init=False)
    _tick: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._tick = self.tick()

    def stamp(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return *payload* with version, commit, started (ISO 8601, UTC) and took_s in front."""
        head = {
            "version": version(),
            "commit": commit(),
            "started": iso_utc(self._started),
            "took_s": round(self.tick() - self._tick, 3),
        }
        return {**head, **payload}


def to_json(payload: dict[str, Any]) -> str:
    """Return *payload* as JSON text, readable by strict parsers.

    Raises:
        ValueError: If a number is NaN or infinite: absence is null in our results.
    """
    return json.dumps(payload, ensure_ascii=False, indent=2, allow_nan=False, default=str)
