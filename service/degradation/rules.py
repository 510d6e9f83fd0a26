"""When the service answers by its CPU model instead of the wanted one (requirements B7), and whether it still does.

gpu_saturated  the GPU is over `busy` of its utilisation for `seconds` without a break; over when it is below for 5 s.
triton_down    the circuit breaker before Triton is open; over when its probe succeeds.
queue_full     a queue in front of the model had no place; told for 5 s after the last such request.

Source    device readings (service/memory_device.py), the backend's breaker, the scheduler's refusals.
Absent    without a GPU, or with a reading that is old, nothing is saturated.
Memory    a few numbers for each reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from service.backend import calls_of
from service.memory_device import Absent, DeviceReading

__all__ = ["ANSWERS", "REASONS", "Answers", "Degradation", "DegradationRules", "DegradationState", "Reason"]

Reason = Literal["gpu_saturated", "triton_down", "queue_full"]
REASONS: Final[tuple[Reason, ...]] = ("gpu_saturated", "triton_down", "queue_full")
Answers = Literal["later", "now", "off"]
ANSWERS: Final[tuple[Answers, ...]] = ("later", "now", "off")
_RECOVERY_SECONDS: Final = 5.0


@dataclass(frozen=True)
class DegradationRules:
    """What can be set.

    Attributes:
        answers: How everybody but VIPs is answered meanwhile: later (202), now (200), off (as if nothing were).
        gpu_busy: Utilisation, 0..1, over which a GPU counts as saturated.
        gpu_seconds: For how long it must be over it.
    """

    answers: Mapping[Reason, Answers]
    gpu_busy: float = 0.95
    gpu_seconds: float = 30.0


@dataclass(frozen=True)
class DegradationState:
    """What metrics show.

    Attributes:
        active: Whether the service is degraded now, by reason.
        entered: Times that it became so since the start, by reason.
        left: Times that it recovered.
    """

    active: Mapping[Reason, bool]
    entered: Mapping[Reason, int]
    left: Mapping[Reason, int]


class Degradation:
    """Knows whether the service is degraded, and why; safe from several threads.

    Args:
        rules: The settings.
        clock: Monotonic seconds.
    """

    def __init__(self, rules: DegradationRules, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        self._lock = threading.Lock()
        self._busy_since: float | None = None
        self._calm_since: float | None = None
        self._saturated = False
        self._full_at = -1e9
        self._backend: object = None
        self._tells = False
        self._active: dict[Reason, bool] = dict.fromkeys(REASONS, False)
        self._entered: dict[Reason, int] = dict.fromkeys(REASONS, 0)
        self._left: dict[Reason, int] = dict.fromkeys(REASONS, 0)

    def observe(self, reading: DeviceReading | Absent) -> None:
        """Take note of a device's reading; a missing one ends a saturation, since nobody knows of any."""
        with self._lock:
            now = self._clock()
            if isinstance(reading, Absent) or reading.busy_ratio is None:
                self._busy_since, self._saturated = None, False
            elif reading.busy_ratio > self.rules.gpu_busy:
                self._calm_since = None
                self._busy_since = now if self._busy_since is None else self._busy_since
                self._saturated = self._saturated or now - self._busy_since >= self.rules.gpu_seconds
            else:
                self._busy_since = None
                self._calm_since = now if self._calm_since is None else self._calm_since
                self._saturated = self._saturated and now - self._calm_since < _RECOVERY_SECONDS
            self._turn("gpu_saturated", active=self._saturated)

    def queue_was_full(self) -> None:
        """Take note of a request for which its queue had no place."""
        with self._lock:
            self._full_at = self._clock()
            self._turn("queue_full", active=True)

    def reason(self, backend: object) -> Reason | None:
        """Return why the wanted model must not be asked now, None where it may, or where the settings say off.

        Args:
            backend: The model; asked for its breaker, where it has one.
        """
        # Asked for every request: what kind of backend it is, is found out once.
        if backend is not self._backend:
            self._backend, self._tells = backend, calls_of(backend) is not None
        if not self._tells and not self._saturated:
            return None
        calls = calls_of(backend)
        self._look(calls is not None and calls.breaker == "open")
        for reason in REASONS[:2]:
            if self._active[reason] and self.rules.answers[reason] != "off":
                return reason
        return None

    def state(self, backend: object) -> DegradationState:
        """Return what metrics show.

        Args:
            backend: The model, or None before there is one.
        """
        calls = calls_of(backend)
        self._look(calls is not None and calls.breaker == "open")
        with self._lock:
            return DegradationState(dict(self._active), dict(self._entered), dict(self._left))

    def _look(self, down: bool) -> None:
        with self._lock:
            self._turn("triton_down", active=down)
            self._turn("queue_full", active=self._clock() - self._full_at < _RECOVERY_SECONDS)

    def _turn(self, reason: Reason, *, active: bool) -> None:
        if self._active[reason] != active:
            self._active[reason] = active
            (self._entered if active else self._left)[reason] += 1
