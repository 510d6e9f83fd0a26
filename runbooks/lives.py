"""The lives of workers as their files tell them: how each start went, who died without a last word, who lived on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runbooks.rows import OpenRequest, RingLife, Rows

__all__ = ["NOT_STARTING", "STARTING", "Start", "died", "lived_through", "start_of", "starts", "stuck"]

# Phases that are no part of a start: after it, or waiting for a person who brings the model (service/lifecycle.py).
NOT_STARTING: Final = ("ready", "stopped", "model_missing", "model_damaged", "model_failed")
# Phases of `runtime_phase` in which the service says of itself that it is not ready yet.
STARTING: Final = ("starting", "loading_model", "warming_up")
# A worker writes its status page about once a second; on a machine without a free core it may be two seconds late.
SIGN_SECONDS: Final = 3.0
# Twice the age from which a worker looks at its threads (probes/standstill.py): one look in it is sure.
STUCK_SECONDS: Final = 10.0
# There the caller is waited for, who may be slow on purpose.
RECEIVING: Final = "network.receive"


@dataclass(frozen=True)
class Start:
    """How one worker's start went.

    Attributes:
        ring: The worker's file.
        began_s: About when the process started, unix seconds: its imports came before its file.
        seconds: Time in phases before it was ready, so far.
        phase: The phase that took longest.
        phase_seconds: How long that one took, so far.
        ready: Whether the start is over.
    """

    ring: RingLife
    began_s: float
    seconds: float
    phase: str
    phase_seconds: float
    ready: bool

    @property
    def ended_s(self) -> float:
        """When it was over, or when the worker last said how it goes; unix seconds."""
        return self.began_s + self.seconds


def start_of(ring: RingLife, *, imports: bool = True) -> Start | None:
    """Return how a worker's start went; None when its status page tells no phases.

    Args:
        ring: The worker's file.
        imports: Whether the time before the recorder was made counts.
    """
    phases = ring.status.get("phases")
    if not isinstance(phases, Mapping):
        return None
    took = {
        str(name): float(seconds)
        for name, seconds in phases.items()
        if name not in NOT_STARTING and isinstance(seconds, int | float) and not isinstance(seconds, bool)
    }
    # The file is opened after the imports, so that the process is older than its file.
    began = ring.started_s - took.get("import", 0.0)
    if not imports and took.pop("import", None) is not None:
        began = ring.started_s
    if not took:
        return None
    longest = max(took, key=lambda name: took[name])
    over = bool(ring.status.get("ready")) or ring.status.get("phase") in NOT_STARTING
    return Start(ring, began, sum(took.values()), longest, took[longest], over)


def starts(rows: Rows) -> list[Start]:
    """Return the starts of all workers that tell of theirs, the oldest first.

    What the first one did before its recorder was made does not count: a recorder that is attached to a process that
    has run for an hour looks like an import of an hour, and there is no earlier start that would tell.
    """
    first = min((ring.started_s for ring in rows.rings), default=0.0)
    known = (start_of(ring, imports=ring.started_s > first) for ring in rows.rings)
    return sorted((one for one in known if one), key=lambda one: one.began_s)


def died(rows: Rows, since: float, until: float) -> list[RingLife]:
    """Return the workers whose last sign of life lies in [since, until] and that never said that they stop.

    A worker that is closed writes "stopped" on its last status page; one that is killed cannot. One that still holds
    its file is silent, not dead.
    """
    return [
        ring
        for ring in rows.rings
        if ring.status
        and not ring.alive
        and ring.status.get("phase") != "stopped"
        and since <= ring.last_sign_s <= until
    ]


def lived_through(rows: Rows, moment: float) -> Sequence[RingLife]:
    """Return the workers that were there before a time, unix seconds, and still gave signs of life well after it."""
    return [ring for ring in rows.rings if ring.started_s < moment - 1.0 and ring.last_sign_s > moment + SIGN_SECONDS]


def stuck(rows: Rows, until: float) -> list[OpenRequest]:
    """Return the requests that had been in work for 10 s at a time, or at the last sign of life of their worker.

    Args:
        rows: Requests and workers.
        until: Unix seconds.
    """
    last = {ring.ring: ring.last_sign_s for ring in rows.rings}
    return [
        one
        for one in rows.open
        if one.stage != RECEIVING and min(until, last.get(one.ring, until)) - one.start_s >= STUCK_SECONDS
    ]
