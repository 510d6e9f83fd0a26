"""How full and how busy the device is on which the model computes, read on a clock of its own, never for a request.

Measures  free bytes, bytes held, utilisation (ratio) where there is one.
Source    NVML (nvidia-ml-py) for a GPU. What other programs on it hold is free to nobody, but not held by this model: a
          neighbour that comes while a batch runs must not count as that batch's need. For a model in host
          memory the process' resident memory, and what machine or container (service/memory.py) leave it.
Error     where the driver does not show this process (pids of another namespace), all on the card counts as this
          model's. As old as the last tick, 0.1 s; peaks between two ticks are missed, unless an allocator keeps them.
Cost      four library calls, or three small files, a tick, in a thread.
Absent    no driver, no card, a lost one, or no reading for 2 s: `Absent(reason)`, which refuses and degrades nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

import psutil

from service.memory import available_memory

__all__ = ["Absent", "DeviceReading", "DeviceWatch", "NvmlDevice", "RamDevice"]

_log = logging.getLogger("service.device")

TICK_SECONDS: Final = 0.1
STALE_SECONDS: Final = 2.0
_MOST_NAMES: Final = 64
# Its processes hold the model that this service asks; as in exporters/gpu/gauges.py.
_TRITON: Final = frozenset({"tritonserver", "triton_python_backend_stub"})
_PAUSE_SECONDS: Final = 5.0
"""After a reading that was absent: a driver that is missing need not be asked ten times a second."""


@dataclass(frozen=True)
class Absent:
    """There is no such figure.

    Attributes:
        reason: Why, in one sentence.
    """

    reason: str


@dataclass(frozen=True)
class DeviceReading:
    """A device at one moment.

    Attributes:
        free_bytes: What may still be taken.
        held_bytes: What is taken; of a GPU without what other programs hold, where they can be told apart.
        busy_ratio: Its utilisation, 0..1; None where there is no such figure.
        noise_bytes: By so much what is taken changes without any batch.
    """

    free_bytes: int
    held_bytes: int
    busy_ratio: float | None = None
    noise_bytes: int = 1 << 20


def _text(value: bytes | str) -> str:
    """Return a name of NVML, which older bindings give as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class NvmlDevice:
    """One GPU, by NVML.

    Args:
        index: Which one.
        budget_bytes: Most of the card that may be in use; 0: all of it. Requirements B16: 16 GB.
        load: Returns the module pynvml; ImportError where it is not installed.
    """

    def __init__(
        self,
        index: int,
        budget_bytes: int = 0,
        load: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
    ) -> None:
        self._index, self._budget = index, budget_bytes
        self._load = load
        self._ready = False
        # pid -> whether it is of this model; bounded by _MOST_NAMES.
        self._known: dict[int, bool] = {}

    def read(self) -> DeviceReading | Absent:
        """Return what the card says now; begins anew after each failure."""
        try:
            nvml = self._load()
        except ImportError:
            return Absent("nvidia-ml-py is not installed")
        try:
            if not self._ready:
                nvml.nvmlInit()
                self._ready = True
            handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            busy, others = self._busy(nvml, handle), self._of_others(nvml, handle)
        except nvml.NVMLError as error:
            self._close(nvml)
            return Absent(f"NVML: {error}")
        free, used = int(memory.free), int(memory.used)
        if self._budget:
            free = max(0, min(free, self._budget - used))
        return DeviceReading(free, max(0, used - others), busy)

    @staticmethod
    def _busy(nvml: Any, handle: Any) -> float | None:
        try:
            return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
        except nvml.NVMLError:
            # A MIG instance has memory and no utilisation.
            return None

    def _of_others(self, nvml: Any, handle: Any) -> int:
        """Return the bytes that programs hold which are neither this process nor Triton's; 0 where nobody can tell."""
        try:
            running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except nvml.NVMLError:
            return 0
        ours = [self._ours(nvml, one.pid) for one in running]
        if not any(ours):
            # The driver counts pids otherwise than we do, or the model is not on the card yet.
            return 0
        return sum(int(one.usedGpuMemory or 0) for one, own in zip(running, ours, strict=True) if not own)

    def _ours(self, nvml: Any, pid: int) -> bool:
        if pid not in self._known:
            if len(self._known) >= _MOST_NAMES:
                self._known.clear()
            try:
                name = PurePath(_text(nvml.nvmlSystemGetProcessName(pid))).name
            except nvml.NVMLError:
                name = ""
            self._known[pid] = pid == os.getpid() or name in _TRITON
        return self._known[pid]

    def _close(self, nvml: Any) -> None:
        if self._ready:
            self._ready = False
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()


class RamDevice:
    """Host memory in a device's place.

    Args:
        reserve_bytes: Left alone.
        budget_bytes: Most that batches may take beyond what the process holds without any; 0: what there is.
        idle: Whether no batch ran since the last reading, so that what is held now is what is held without any.
        held: Returns the process' resident bytes.
        left: Returns the bytes that machine or container leave.
    """

    def __init__(
        self,
        reserve_bytes: int,
        budget_bytes: int = 0,
        idle: Callable[[], bool] = lambda: False,
        held: Callable[[], int] = lambda: int(psutil.Process().memory_info().rss),
        left: Callable[[], int] = lambda: available_memory().left_bytes,
    ) -> None:
        self._reserve, self._budget = reserve_bytes, budget_bytes
        self._idle, self._held, self._left = idle, held, left
        self._without: int | None = None

    def read(self) -> DeviceReading | Absent:
        """Return what is free and held now."""
        try:
            held, free = self._held(), self._left() - self._reserve
        except (OSError, psutil.Error) as error:
            return Absent(f"host memory cannot be read: {error}")
        if self._without is None or held < self._without or self._idle():
            self._without = held
        if self._budget:
            free = min(free, self._budget - (held - self._without))
        # An interpreter's memory comes and goes by some MiB with its garbage.
        return DeviceReading(max(0, free), held, noise_bytes=8 << 20)


class DeviceWatch:
    """Reads a device in a thread; whoever asks gets the last reading, if it is not old.

    Args:
        read: Returns a reading.
        told: Called after each, in the thread.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        read: Callable[[], DeviceReading | Absent],
        *told: Callable[[DeviceReading | Absent], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._told, self._clock = read, told, clock
        self._last: tuple[float, DeviceReading | Absent] = (clock(), Absent("not read yet"))
        self._peak: int | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-watch", daemon=True)

    def start(self) -> None:
        """Start reading; after any fork."""
        self._thread.start()

    def stop(self, wait_seconds: float = 1.0) -> None:
        """Stop reading, and wait a bounded time: a driver may hang."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(wait_seconds)

    def latest(self) -> DeviceReading | Absent:
        """Return the last reading; never waits for one."""
        at, reading = self._last
        if isinstance(reading, DeviceReading) and self._clock() - at > STALE_SECONDS:
            return Absent(f"the last reading is older than {STALE_SECONDS:.0f} s")
        return reading

    @property
    def peak_bytes(self) -> int | None:
        """Most that was held at any reading since `forget_peak`, which loading a model calls for; None before one."""
        return self._peak

    def forget_peak(self) -> None:
        """Begin anew from what is held now: what loading took for a moment says nothing about serving."""
        reading = self.latest()
        self._peak = reading.held_bytes if isinstance(reading, DeviceReading) else None

    def tick(self) -> DeviceReading | Absent:
        """Read once, and tell."""
        try:
            reading = self._read()
        except Exception as error:  # noqa: BLE001 - one probe that breaks costs one probe
            reading = Absent(f"{type(error).__name__}")
        before = self._last[1]
        if isinstance(reading, Absent) and before != reading:
            _log.warning("no reading of the model's device: %s; nothing is refused or degraded by it", reading.reason)
        self._last = (self._clock(), reading)
        if isinstance(reading, DeviceReading):
            self._peak = max(self._peak or 0, reading.held_bytes)
        for tell in self._told:
            tell(reading)
        return reading

    def _run(self) -> None:
        while not self._stopped.is_set():
            absent = isinstance(self.tick(), Absent)
            self._stopped.wait(_PAUSE_SECONDS if absent else TICK_SECONDS)
