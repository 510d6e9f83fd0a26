"""What is written down about a running stack: `<state dir>/run/stack.json`, and the lock that makes it the only one."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.stack.process import ProcessRecord, is_alive
from probes import private_file

__all__ = [
    "PartState",
    "StackState",
    "make_private_folder",
    "only_stack",
    "read_state",
    "state_file",
    "write_private",
    "write_state",
]

FORMAT = 1


@dataclass
class PartState:
    """One part as it was last seen by its supervisor.

    Attributes:
        name: service, exporter, triage, alertmanager or prometheus.
        port: Its main port.
        url: Where people find it.
        health_url: What is asked for its health.
        record: Its process; None when it was left out.
        left_out: Why it was not started; None when it was.
        exit_code: As the kernel told it, negative for a signal; None while it runs or when nobody was there to see.
        ended_unix: When its end was noticed, in seconds.
    """

    name: str
    port: int
    url: str
    health_url: str
    record: ProcessRecord | None = None
    left_out: str | None = None
    exit_code: int | None = None
    ended_unix: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the part as plain JSON values."""
        return vars(self) | {"record": self.record.to_json() if self.record else None}


@dataclass
class StackState:
    """One stack: its folders, its parts, and how far it is.

    Attributes:
        phase: starting, ready, stopping, stopped or failed.
        message: Why the start or the last mending failed, in one line; else empty.
        mends: How often ended parts were started again, successfully or not.
    """

    state_dir: str
    ring_dir: str
    started_unix: float
    phase: str = "starting"
    message: str = ""
    mends: int = 0
    supervisor: ProcessRecord | None = None
    parts: list[PartState] = field(default_factory=list)

    def part(self, name: str) -> PartState | None:
        """Return the part called *name*, if there is one."""
        return next((part for part in self.parts if part.name == name), None)

    def live_parts(self) -> list[PartState]:
        """Return the parts whose process runs now."""
        return [part for part in self.parts if part.record and is_alive(part.record)]

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain JSON values."""
        supervisor = self.supervisor.to_json() if self.supervisor else None
        return vars(self) | {
            "format": FORMAT,
            "supervisor": supervisor,
            "parts": [part.to_json() for part in self.parts],
        }

    @classmethod
    def from_json(cls, raw: Any) -> StackState:
        """Read a state back.

        Raises:
            KeyError, ValueError, TypeError: If the text is not what `to_json` writes.
        """
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise ValueError(f"not a record of format {FORMAT}")
        parts = [
            PartState(**{**part, "record": ProcessRecord.from_json(part["record"]) if part["record"] else None})
            for part in raw["parts"]
        ]
        supervisor = ProcessRecord.from_json(raw["supervisor"]) if raw["supervisor"] else None
        # named one by one: a key of a newer format must not become an attribute
        plain = {key: raw[key] for key in ("state_dir", "ring_dir", "started_unix", "phase", "message", "mends")}
        return cls(**plain, supervisor=supervisor, parts=parts)


def make_private_folder(folder: Path, uid: int | None = None) -> Path:
    """Create *folder* for the present user alone, or close an existing one of ours to everybody else.

    Args:
        folder: The folder.
        uid: Who must own it; the present user by default.

    Raises:
        CannotRun: If it cannot be made or written, belongs to somebody else, or is a place that others need as well.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CannotRun(
            f"cannot make the folder {folder}: {error.strerror}", "set INFERDECK_STATE_DIR to a folder you may write"
        ) from error
    _close_to_others(folder, os.geteuid() if uid is None else uid)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CannotRun(
            f"cannot write to {folder}", "mend its owner or mode, or set INFERDECK_STATE_DIR to another folder"
        )
    return folder


def _close_to_others(folder: Path, uid: int) -> None:
    """Make sure that nobody else may look into *folder* or swap what is in it: logs and reports name sessions."""
    try:
        info = folder.stat()
        if info.st_uid != uid:
            raise CannotRun(f"{folder} belongs to user {info.st_uid}", "take another folder, or mend its owner")
        if not stat.S_IMODE(info.st_mode) & 0o077:
            return
        # /tmp, a home, the working folder and all above it: closing these would lock others out of what is theirs
        needed = {path for place in (Path(os.environ.get("HOME", "/")), Path.cwd()) for path in (place, *place.parents)}
        if info.st_mode & stat.S_ISVTX or folder.resolve() in needed:
            raise CannotRun(
                f"{folder} is open to others, and no folder of ours alone",
                "set INFERDECK_STATE_DIR to a folder of its own",
            )
        folder.chmod(0o700)
    except OSError as error:
        raise CannotRun(f"cannot close {folder} to others: {error.strerror}", "chmod 700 it") from error


def write_private(path: Path, text: str) -> None:
    """Replace *path* with *text* in one step, readable by the owner alone; its folder is made when it is missing."""
    make_private_folder(path.parent)
    private_file.write_private(path, text.encode())


def state_file(state_dir: Path) -> Path:
    """Return the path of the stack's record."""
    return state_dir / "run" / "stack.json"


def write_state(state: StackState) -> None:
    """Write *state* to its folder in one step."""
    write_private(state_file(Path(state.state_dir)), json.dumps(state.to_json(), indent=1))


def read_state(state_dir: Path) -> StackState | None:
    """Return what is written down about the stack of *state_dir*, or None when nothing is.

    Raises:
        CannotRun: If the record cannot be read.
    """
    path = state_file(state_dir)
    try:
        return StackState.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        # a file in the way is found, and told with its mend, by whoever makes the folder
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRun(
            f"{path} cannot be read ({type(error).__name__}: {error})",
            "look for our processes with `ps`, then delete the file",
        ) from error


@contextmanager
def only_stack(state_dir: Path) -> Iterator[None]:
    """Hold the state folder while a stack runs from it.

    The lock goes with the process that holds it, so a killed supervisor leaves none behind.

    Raises:
        CannotRun: If another process holds it, or parts of an earlier stack still run.
    """
    make_private_folder(state_dir)
    run = make_private_folder(state_dir / "run")
    handle = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotRun(
                f"a stack already runs from {state_dir}",
                "see `inferdeck status`, end it with `inferdeck down`, or set INFERDECK_STATE_DIR",
            ) from error
        earlier = read_state(state_dir)
        if earlier and (left := earlier.live_parts()):
            names = ", ".join(part.name for part in left)
            raise CannotRun(
                f"parts of an earlier stack still run from {state_dir}: {names}", "end them with `inferdeck down`"
            )
        yield
    finally:
        os.close(handle)
