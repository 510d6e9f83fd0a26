"""What survives the exporter's restart: cursors and totals, in one file, so that they always belong together.

Written to a new file and renamed, so that a kill leaves the old or the new one, never half of one. Not flushed to the
disk on each write: that guards against a crash of the whole machine only, after which the rows (on tmpfs) are gone as
well, and a file that did not reach the disk is recognised by its checksum. The last write, on a clean stop, is flushed.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from exporters.totals import Totals
from probes.private_file import write_private

__all__ = ["RingState", "State", "StateUnreadableError", "load_state", "save_state"]

VERSION: Final = 1
# About 400 kB is usual for 100 ring files; a file beyond this is not ours.
MAX_BYTES: Final = 64 << 20


class StateUnreadableError(Exception):
    """The state file is there and cannot be used; the message says why."""


@dataclass
class RingState:
    """How far one ring file was counted.

    Attributes:
        cursor: Next row to read.
        seen: What the worker's status page had counted when it was last added to the totals.
        finished: The worker is dead, its rows are drained and its unfinished requests counted.
        died_unix_ns: When it was first seen dead; 0 while alive.
    """

    cursor: int = 0
    seen: Totals = field(default_factory=Totals)
    finished: bool = False
    died_unix_ns: int = 0


@dataclass
class State:
    """Totals, and the cursors of the ring files that they were made from, by file name."""

    totals: Totals = field(default_factory=Totals.at_zero)
    rings: dict[str, RingState] = field(default_factory=dict)


def load_state(path: Path) -> State | None:
    """Return the state in *path*, or None when there is no such file.

    Raises:
        StateUnreadableError: If the file cannot be read, is damaged, or was written by another version.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateUnreadableError(f"{path}: {error.strerror}") from error
    # JSON alone would not do: a cut number is still a number.
    checksum, _, body = raw.partition(b"\n")
    if len(raw) > MAX_BYTES or checksum != b"%08x" % zlib.crc32(body):
        raise StateUnreadableError(f"{path}: damaged (checksum differs)")
    try:
        found = json.loads(body)
        if found["version"] != VERSION:
            raise StateUnreadableError(f"{path}: version {found['version']}, this exporter reads {VERSION}")
        # Metrics that are new in this version start at 0 beside the old totals.
        totals = Totals.at_zero()
        totals.merge(Totals.from_json(found["totals"]))
        return State(totals, {str(name): _ring_state(entry) for name, entry in found["rings"].items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateUnreadableError(f"{path}: damaged ({error!r})") from error


def save_state(
    path: Path, state: State, *, flush: bool = False, replace: Callable[[Path, Path], Any] = os.replace
) -> None:
    """Write *state* to *path*, whole or not at all.

    Args:
        path: The state file; its folder exists.
        state: What to keep.
        flush: Also wait until it is on the disk.
        replace: Renames the finished new file over the old one.

    Raises:
        OSError: If it cannot be written; the old file is still there then.
    """
    body = json.dumps(
        {
            "version": VERSION,
            "totals": state.totals.to_json(),
            "rings": {
                name: {
                    "cursor": ring.cursor,
                    "seen": ring.seen.to_json(),
                    "finished": ring.finished,
                    "died_unix_ns": ring.died_unix_ns,
                }
                for name, ring in state.rings.items()
            },
        },
        separators=(",", ":"),
    ).encode()
    write_private(path, b"%08x\n" % zlib.crc32(body) + body, flush=flush, replace=replace)


def _ring_state(entry: dict[str, Any]) -> RingState:
    """Return one ring's state from its JSON form."""
    return RingState(
        cursor=int(entry["cursor"]),
        seen=Totals.from_json(entry["seen"]),
        finished=bool(entry["finished"]),
        died_unix_ns=int(entry["died_unix_ns"]),
    )
