"""What share of the requests goes to which canary: one file for all workers, which outlives them.

Whoever changes it holds a lock and looks again under it, so that two workers that decide at the same time decide once.
A rollback says of which generation it speaks: what an operator has set meanwhile is not taken back.

Memory: a file of at most 64 KiB.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

__all__ = ["FOLDER", "ROLLBACK_REASONS", "CanaryState", "CanaryStore", "StateUnusable"]

FOLDER: Final = "canary"
"""Folder of the state, below the service's."""
ROLLBACK_REASONS: Final = ("errors", "latency", "flips", "operator")
_FORMAT: Final = "inferdeck-canary/1"
_MOST_BYTES: Final = 64 * 1024
_BY: Final = ("settings", "operator", "rollback")


class StateUnusable(ValueError):  # noqa: N818 - says what is wrong
    """The file is not what this code writes; the message is one line."""


@dataclass(frozen=True)
class CanaryState:
    """What is wanted.

    Attributes:
        model: Folder of the other version's model, or `triton:N`; None for none.
        share: Share of the requests that go to it, 0..1.
        by: Who wanted it: settings, operator, rollback.
        reason: Why, in one line.
        changed_unix_ns: When.
        generation: Grows with each change.
        base: Model and share of the settings that this was made of; None if no service has read it yet.
        rollbacks: How often it was taken back, by reason.
    """

    model: str | None = None
    share: float = 0.0
    by: str = "settings"
    reason: str = ""
    changed_unix_ns: int = 0
    generation: int = 0
    base: str | None = None
    rollbacks: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(ROLLBACK_REASONS, 0))

    @property
    def rolled_back(self) -> bool:
        """Whether it was taken back, and nobody has set it since."""
        return self.by == "rollback"


class CanaryStore:
    """The file.

    Args:
        folder: Where it is; made when something is written. None keeps the state in this process alone.
        clock: Unix nanoseconds.
    """

    def __init__(self, folder: Path | None, clock: Callable[[], int] = time.time_ns) -> None:
        self._folder = folder
        self._clock = clock
        self._memory: CanaryState | None = None

    @property
    def path(self) -> Path | None:
        """Return where the file is."""
        return None if self._folder is None else self._folder / "state.json"

    def read(self) -> CanaryState | None:
        """Return the state, None if nobody has written one.

        Raises:
            StateUnusable: If it is not what this code writes.
            OSError: If it cannot be read.
        """
        if self.path is None:
            return self._memory
        try:
            with self.path.open("rb") as file:
                return _parse(file.read(_MOST_BYTES + 1))
        except FileNotFoundError:
            return None

    def stamp(self) -> tuple[int, int] | None:
        """Return what differs when the file was changed; None without a file."""
        try:
            found = None if self.path is None else self.path.stat()
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_ino)

    def begin(self, model: str | None, share: float) -> CanaryState:
        """Return the state for a service with these settings: the file's, unless the settings are others than then.

        Raises:
            StateUnusable, OSError: As for `read`, and if it cannot be written.
        """
        base = f"{model or ''} {share:g}"

        def settle(now: CanaryState) -> CanaryState | None:
            if now.base == base:
                return None
            if now.base is None and now.by != "settings":
                return replace(now, base=base)
            return self._next(replace(now, model=model, share=share, by="settings", reason="", base=base))

        found = self.read()
        if found is None and model is None:
            return CanaryState(base=base)
        return self._change(settle)

    def set(self, *, share: float | None = None, model: str | None = None) -> CanaryState:
        """Set the share, or the model, or both, as an operator.

        Raises:
            StateUnusable, OSError: As for `begin`.
        """

        def to(now: CanaryState) -> CanaryState:
            wanted = replace(now, model=model or now.model, share=now.share if share is None else share)
            return self._next(replace(wanted, by="operator", reason="set"))

        return self._change(to)

    def roll_back(self, reason: str, detail: str, generation: int | None = None) -> bool:
        """Let no request go to the canary any more.

        Args:
            reason: One of ROLLBACK_REASONS.
            detail: Why, in one line.
            generation: What it is about; None for whatever there is.

        Returns:
            Whether this call did it, and not another worker or an operator before.

        Raises:
            StateUnusable, OSError: As for `begin`.
        """
        done = False

        def to(now: CanaryState) -> CanaryState | None:
            nonlocal done
            if (generation is not None and now.generation != generation) or (not now.share and now.rolled_back):
                return None
            done = True
            counts = {**now.rollbacks, reason: now.rollbacks.get(reason, 0) + 1}
            return self._next(replace(now, share=0.0, by="rollback", reason=detail, rollbacks=counts))

        self._change(to)
        return done

    def _next(self, state: CanaryState) -> CanaryState:
        return replace(state, generation=state.generation + 1, changed_unix_ns=self._clock())

    def _change(self, to: Callable[[CanaryState], CanaryState | None]) -> CanaryState:
        with self._locked():
            now = self.read() or CanaryState()
            wanted = to(now)
            if wanted is None:
                return now
            self._write(wanted)
            return wanted

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._folder is None:
            yield
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, state: CanaryState) -> None:
        if self.path is None:
            self._memory = state
            return
        told = {name: getattr(state, name) for name in CanaryState.__dataclass_fields__} | {"format": _FORMAT}
        beside = self.path.with_suffix(".new")
        descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


def _parse(raw: bytes) -> CanaryState:
    if len(raw) > _MOST_BYTES:
        raise StateUnusable(f"the canary's state has over {_MOST_BYTES} bytes")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise StateUnusable(f"the canary's state is no JSON: {' '.join(str(error).split())[:100]}") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise StateUnusable(f"the canary's state is not of the format {_FORMAT}")
    if not _sound(found):
        raise StateUnusable("the canary's state has a value that cannot be")
    counts = {reason: found["rollbacks"].get(reason, 0) for reason in ROLLBACK_REASONS}
    names = CanaryState.__dataclass_fields__.keys() - {"rollbacks"}
    return CanaryState(**{name: found[name] for name in names}, rollbacks=counts)


def _sound(found: Mapping[str, Any]) -> bool:
    share, counts = found.get("share"), found.get("rollbacks")
    return (
        isinstance(share, int | float)
        and not isinstance(share, bool)
        and math.isfinite(share)
        and 0.0 <= share <= 1.0
        and found.get("by") in _BY
        and all(found.get(name, 0) is None or isinstance(found.get(name, 0), str) for name in ("model", "base"))
        and isinstance(found.get("reason"), str)
        and all(_count(found.get(name)) for name in ("generation", "changed_unix_ns"))
        and isinstance(counts, dict)
        and all(_count(counts.get(reason, 0)) for reason in ROLLBACK_REASONS)
    )


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
