"""Requests as triage reads them: one array per column, and beside them the life of each worker's ring."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from exporters.names import INPUT_BUCKETS

__all__ = ["OUTCOMES", "Blocker", "Episode", "Floats", "OpenRequest", "RingLife", "Rows", "bucket_of"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]

# The row's `outcome` column holds the index (docs/architecture.md, section 2).
OUTCOMES = ("ok", "refused", "error", "degraded", "disconnected")

# Code that no user wrote: the standard library, installed packages, what the interpreter made, and our own middleware.
FOREIGN: Final = re.compile(r"/lib/python3\.\d+/|/(?:site|dist)-packages/|^<|(?:^|/)probes/asgi\.py:")
EVENT_LOOP: Final = re.compile(r"(?:^|/)(?:asyncio|uvloop)/")


@dataclass(frozen=True)
class Episode:
    """A time in which the event loop of one worker stood still.

    Attributes:
        start_s: Start, unix seconds.
        duration_s: Seconds.
        stack: What ran then, innermost frame first, "file:line function".
        cpu_s: CPU seconds of the loop's thread meanwhile; None if unknown.
        thread_late_s: How late the watching thread of the same process was meanwhile, seconds; None if unknown.
        run_wait_s: Seconds that the loop's thread was ready to run meanwhile and got no CPU; None if unknown.
    """

    start_s: float
    duration_s: float
    stack: tuple[str, ...]
    cpu_s: float | None = None
    thread_late_s: float | None = None
    run_wait_s: float | None = None

    @property
    def frame(self) -> str:
        """The first frame of the user's own code, else the innermost; with the last two parts of its path.

        Enough to find it, and nothing of the machine. What lies outside of the loop's own frames did not block it.
        """
        own = None
        for line in self.stack:
            if EVENT_LOOP.search(line):
                break
            if not FOREIGN.search(line):
                own = line
                break
        return _short(own or self.innermost)

    @property
    def innermost(self) -> str:
        """The line of the innermost frame as it was taken; empty when there is no stack."""
        return self.stack[0] if self.stack else ""

    @property
    def place(self) -> str:
        """The frame and, where it called into somebody else's code, the innermost frame."""
        inside = _short(self.innermost)
        return self.frame if inside == self.frame else f"{self.frame} (in {inside})"


@dataclass(frozen=True)
class Blocker:
    """What one piece of code blocked the event loop of one worker in all, since the worker's start.

    Attributes:
        sample: One blocked time with its stack, for the frame to name.
        count: How often.
        seconds: For how long in all.
        first_s: Start of the first, unix seconds.
        last_s: End of the last, unix seconds.
    """

    sample: Episode
    count: int
    seconds: float
    first_s: float
    last_s: float


def _short(line: str) -> str:
    path, _, rest = line.partition(":")
    return f"{'/'.join(path.split('/')[-2:])}:{rest}" if line else ""


@dataclass(frozen=True)
class RingLife:
    """What one worker's file tells about its worker.

    Attributes:
        ring: Id of the file.
        worker: Worker's name.
        alive: Whether its owner still holds the file now (not at the time of the incident).
        started_s: Start of the worker, unix seconds.
        last_sign_s: Last row or status page, unix seconds.
        episodes: Blocked times of the event loop; the service keeps the last 32.
        blockers: All blocked times since the worker's start, summed by what blocked; most time first.
        loop_tick_age_s: Age of the loop's last tick when the status page was written; None if unknown.
        status: The status page itself.
    """

    ring: str
    worker: str
    alive: bool
    started_s: float
    last_sign_s: float
    episodes: tuple[Episode, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    loop_tick_age_s: float | None = None
    status: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenRequest:
    """A request that began and has no row yet.

    Attributes:
        ring: Id of the worker's file.
        start_s: Start, unix seconds.
        stage: The stage it was in; empty when in none.
        trace_id: 32 hex digits.
        session_hash: Keyed hash of the session id.
        alive: Whether its worker lives now; a dead one's request never ends.
    """

    ring: str
    start_s: float
    stage: str
    trace_id: str
    session_hash: int
    alive: bool


def bucket_of(lengths: npt.NDArray[np.int64]) -> Objects:
    """Return the length class of each input: short under 100 characters, medium to 500, long above (row A10).

    Args:
        lengths: Characters, shape (n,); -1 when unknown.
    """
    classes = np.array(INPUT_BUCKETS, dtype=object)
    # Same borders as exporters.names.input_bucket, which takes one number; a test holds them together.
    return np.asarray(classes[np.where(lengths < 0, 3, np.digitize(lengths, (100, 501)))])


@dataclass(frozen=True)
class Rows:
    """Ended requests of all workers, in order of their end.

    Attributes:
        start_s: Starts, unix seconds, shape (n,).
        duration_s: Durations in seconds, shape (n,).
        outcome: Index into OUTCOMES, shape (n,).
        bucket: Length class, shape (n,).
        session: Keyed hash of the session id, shape (n,).
        trace_id: 32 hex digits each, shape (n,).
        ring: Id of the worker's file, shape (n,).
        labels: Column name -> strings, shape (n,): route, client_release, device_type, worker, model...
        stages: Stage -> (seconds after the request's start, seconds), NaN where it did not run.
        parents: Stage -> parent stage; empty for stages right below the request.
        cpu_s: Stage -> its CPU seconds, NaN where it did not run; only stages that measure it.
        numbers: Column -> its values, NaN where absent; only columns that steps compute with.
        refused_texts: Column -> which rows had a text there that the recorder refused, since the column had too many;
            only columns in which that happened.
        open: Requests without a row.
        rings: The workers' files.
        known_from_s: Rows before this time may be overwritten or were not read.
    """

    start_s: Floats
    duration_s: Floats
    outcome: npt.NDArray[np.int64]
    bucket: Objects
    session: npt.NDArray[np.uint64]
    trace_id: Objects
    ring: Objects
    labels: Mapping[str, Objects] = field(default_factory=dict)
    stages: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    cpu_s: Mapping[str, Floats] = field(default_factory=dict)
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    refused_texts: Mapping[str, Mask] = field(default_factory=dict)
    open: tuple[OpenRequest, ...] = ()
    rings: tuple[RingLife, ...] = ()
    known_from_s: float = 0.0

    def __len__(self) -> int:
        return len(self.start_s)

    @property
    def end_s(self) -> Floats:
        """Ends, unix seconds, shape (n,)."""
        return self.start_s + self.duration_s

    def between(self, since_s: float, until_s: float) -> Mask:
        """Return which requests ended in [since, until), unix seconds."""
        end = self.end_s
        return np.asarray((end >= since_s) & (end < until_s))

    def answered(self) -> Mask:
        """Return which requests got an answer from the model (ok or degraded)."""
        return np.asarray((self.outcome == OUTCOMES.index("ok")) | (self.outcome == OUTCOMES.index("degraded")))

    def outside_stages_s(self) -> Floats:
        """Return each request's time outside of its top stages, in seconds, shape (n,)."""
        # Only top stages: children lie inside their parents and would be counted twice.
        inside = np.zeros(len(self))
        for name, (_, seconds) in self.stages.items():
            if not self.parents.get(name):
                inside += np.nan_to_num(seconds)
        return np.maximum(self.duration_s - inside, 0.0)

    def self_times(self) -> dict[str, Floats]:
        """Return per stage its own seconds (without its children's), and "(outside stages)"; 0 where it did not run."""
        own = {name: np.nan_to_num(seconds).copy() for name, (_, seconds) in self.stages.items()}
        for name, (_, seconds) in self.stages.items():
            parent = self.parents.get(name, "")
            if parent in own:
                own[parent] -= np.nan_to_num(seconds)
        times = {name: np.maximum(seconds, 0.0) for name, seconds in own.items()}
        times["(outside stages)"] = self.outside_stages_s()
        return times
