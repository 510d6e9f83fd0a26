"""Messages for the stream's tests: lines of files, and what they must add up to."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.stream.consumer import Consumer
from service.stream.files import FileSource
from service.stream.letters import FolderSink
from service.stream.message import Message
from service.stream.process import Policy
from service.stream.records import Records

# The middle of a minute, so that a test's seconds do not cross into another one.
NOON_S = 1_796_126_430
SESSION = "session-0123456789ab"


def query(number: int, at_s: float = NOON_S, **other: Any) -> dict[str, Any]:
    """Return a message of the contract, told apart by its number."""
    stamp = datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
    known = {"session_id": SESSION, "utterance": f"how long is delivery {number}", "timestamp": stamp}
    return {**known, "device_type": "web", **other}


def raw(number: int, at_s: float = NOON_S, **other: Any) -> bytes:
    """Return the same as bytes."""
    return json.dumps(query(number, at_s, **other), ensure_ascii=False).encode()


def message(value: bytes | None, position: int = 1, partition: str = "0", headers: Any = ()) -> Message:
    """Return a message as a source hands it over."""
    return Message(partition, position, value, len(value or b""), headers)


def write_lines(path: Path, lines: list[bytes], mode: str = "ab") -> None:
    """Write lines to a file, by default behind what is there."""
    with path.open(mode) as file:
        file.writelines(line + b"\n" for line in lines)


class Clock:
    """A wall clock that is set."""

    def __init__(self, at_s: float = NOON_S) -> None:
        self.at_s = at_s

    def __call__(self) -> int:
        """Return ns since 1970."""
        return int(self.at_s * 1e9)


def file_consumer(folder: Path, clock: Clock, policy: Policy | None = None, **other: Any) -> Consumer:
    """Return a consumer of `<folder>/in` with everything else below *folder*."""
    (folder / "in").mkdir(exist_ok=True)
    policy = policy or Policy()
    source = FileSource(folder / "in", policy.message_bytes)
    sink = FolderSink(folder / "service")
    records = other.pop("records", Records(None))
    return Consumer(source, sink, folder / "state", policy, records=records, clock_ns=clock, **other)


def drain(consumer: Consumer) -> int:
    """Step until nothing more comes; return how many messages that were."""
    total = 0
    while count := consumer.step(0.0):
        total += count
    return total
