"""Whether the canary is worse than the stable version: counts of the last minutes against limits.

Measures  failures, time in the model's hands, and flipped labels, of the requests of this worker.
Bounds    each has a least number; the limit must hold at several looks in a row, so that one bad second is no verdict.
          Once taken back it stays so until somebody sets it anew.
Memory    a slot of counts for each 10 s, and the last 512 times of either version.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from service.canary.choice import ROLES, Role

__all__ = ["CanaryJudge", "CanaryRules", "Verdict"]

_SLOT_SECONDS: Final = 10.0
_MOST_TIMES: Final = 512


@dataclass(frozen=True)
class CanaryRules:
    """When a canary is taken back.

    Attributes:
        window_seconds: How far back it is looked.
        least_requests: Requests of the canary, and of the stable version, below which nothing is judged.
        least_comparisons: Compared answers below which flips are not judged.
        error_share: Share of failures by which the canary may be above the stable version.
        latency_ratio: How many times the stable version's median the canary's may be.
        latency_floor_seconds: And by how much it must be above it: a thousandth of a second hurts nobody.
        flip_share: Share of compared answers that may have another label.
        looks: How many looks in a row a limit must be exceeded.
    """

    window_seconds: float = 300.0
    least_requests: int = 50
    least_comparisons: int = 30
    error_share: float = 0.05
    latency_ratio: float = 1.5
    latency_floor_seconds: float = 0.002
    flip_share: float = 0.1
    looks: int = 3


@dataclass(frozen=True)
class Verdict:
    """Why the canary is taken back.

    Attributes:
        reason: errors, latency or flips.
        detail: With the figures, in one line.
    """

    reason: str
    detail: str


@dataclass
class _Slot:
    began: float
    asked: dict[Role, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    failed: dict[Role, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    compared: int = 0
    flipped: int = 0


class CanaryJudge:
    """Counts, and judges.

    Args:
        rules: The limits.
        clock: Monotonic seconds.
    """

    def __init__(self, rules: CanaryRules, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything: another model, or another share, begins."""
        with self._lock:
            self._slots: deque[_Slot] = deque(maxlen=int(self.rules.window_seconds / _SLOT_SECONDS) + 1)
            self._times: dict[Role, deque[tuple[float, float]]] = {r: deque(maxlen=_MOST_TIMES) for r in ROLES}
            self._held = 0
            self._last = ""

    def answered(self, role: Role, seconds: float) -> None:
        """Take note of an answer and of the time it took, the wait in the queue left out."""
        with self._lock:
            now = self._clock()
            self._slot(now).asked[role] += 1
            self._times[role].append((now, seconds))

    def failed(self, role: Role) -> None:
        """Take note of a request that a version could not answer."""
        with self._lock:
            slot = self._slot(self._clock())
            slot.asked[role] += 1
            slot.failed[role] += 1

    def compared(self, *, flipped: bool) -> None:
        """Take note of an answer that was compared with the stable version's."""
        with self._lock:
            slot = self._slot(self._clock())
            slot.compared += 1
            slot.flipped += flipped

    def _slot(self, now: float) -> _Slot:
        if not self._slots or now - self._slots[-1].began >= _SLOT_SECONDS:
            self._slots.append(_Slot(now))
        return self._slots[-1]

    def look(self) -> Verdict | None:
        """Return why the canary is to be taken back, once a limit was exceeded often enough in a row."""
        with self._lock:
            verdict = self._exceeded(self._clock() - self.rules.window_seconds)
            reason = verdict.reason if verdict else ""
            self._held = self._held + 1 if reason and reason == self._last else int(bool(reason))
            self._last = reason
            return verdict if self._held >= self.rules.looks else None

    def _exceeded(self, since: float) -> Verdict | None:
        rules = self.rules
        slots = [slot for slot in self._slots if slot.began >= since]
        asked = {role: sum(slot.asked[role] for slot in slots) for role in ROLES}
        if asked["canary"] >= rules.least_requests:
            shares = {role: sum(slot.failed[role] for slot in slots) / max(asked[role], 1) for role in ROLES}
            if shares["canary"] - shares["stable"] > rules.error_share:
                told = f"{shares['canary']:.1%} of {asked['canary']} requests failed, stable {shares['stable']:.1%}"
                return Verdict("errors", told)
        compared = sum(slot.compared for slot in slots)
        flipped = sum(slot.flipped for slot in slots)
        if compared >= rules.least_comparisons and flipped > rules.flip_share * compared:
            return Verdict("flips", f"{flipped} of {compared} compared answers have another label")
        return self._slower(since)

    def _slower(self, since: float) -> Verdict | None:
        rules = self.rules
        times = {role: [took for at, took in self._times[role] if at >= since] for role in ROLES}
        if min(map(len, times.values())) < rules.least_requests:
            return None
        stable, canary = (statistics.median(times[role]) for role in ROLES)
        if canary > rules.latency_ratio * stable and canary - stable > rules.latency_floor_seconds:
            return Verdict("latency", f"median {canary * 1e3:.2f} ms, stable {stable * 1e3:.2f} ms")
        return None
