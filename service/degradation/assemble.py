"""Degradation and the memory gate as the settings want them, with the watch on the device that both look at."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from probes.settings import default_ring_dir
from service.degradation.answers import DegradedAnswers
from service.degradation.fallback import Fallback
from service.degradation.results import ResultStore
from service.degradation.rules import Degradation, DegradationRules
from service.executor import Executor
from service.memory_device import Absent, DeviceReading, DeviceWatch, NvmlDevice, RamDevice
from service.memory_sessions import sessions
from service.scheduler.memory import MemoryGate
from service.service_metrics import Degraded
from service.settings import Settings
from service.state_folder import state_folder

__all__ = ["DegradedParts"]

_FOLDER: Final = "results"


class DegradedParts:
    """All that one worker runs for it.

    Args:
        settings: The settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._executor = Executor(1, "inference-fallback")
        folder = settings.results_dir or default_ring_dir("sentiment") / _FOLDER
        self.store = ResultStore(folder, settings.results_places, settings.results_seconds)
        rules = DegradationRules(
            dict(settings.degraded_answers.items()), settings.degraded_gpu_busy, settings.degraded_gpu_seconds
        )
        self._degradation = Degradation(rules)
        fallback = Fallback(self._executor, settings.fallback_places, self.store)
        self.answers = DegradedAnswers(self._degradation, fallback, settings.deadline_seconds)
        self._watch, self.gate = self._device(settings)

    def _device(self, settings: Settings) -> tuple[DeviceWatch | None, MemoryGate]:
        kind = settings.memory_device
        behind = settings.backend == "triton"
        if not behind and kind in {"auto", "none"}:
            # The model in this process computes on the CPU: a GPU beside it says nothing about it.
            return None, MemoryGate()
        nvml = NvmlDevice(settings.gpu_index, settings.memory_budget_bytes)
        ram = RamDevice(settings.memory_reserve_bytes, settings.memory_budget_bytes, self._idle)
        watch = DeviceWatch((ram if kind == "ram" else nvml).read, self._observe)
        if kind == "none":
            return watch, MemoryGate()
        return watch, MemoryGate(
            watch.latest, _estimates(), f"{kind} {settings.model_dir.name} {settings.triton_version}"
        )

    def _idle(self) -> bool:
        # The gate is made after the watch that it asks.
        return self.gate.idle()

    def _observe(self, reading: DeviceReading | Absent) -> None:
        self._degradation.observe(reading)
        self.gate.observe(reading)

    def start(self) -> None:
        """Start thread and watch; after any fork."""
        self._executor.start()
        if self._watch is not None:
            self._watch.start()

    def model_loaded(self) -> None:
        """Take note that the model is there: the peak of its device's memory counts from here."""
        if self._watch is not None:
            self._watch.forget_peak()

    def stop(self) -> None:
        """Stop both, each within a bounded time."""
        if self._watch is not None:
            self._watch.stop()
        self._executor.close()

    def snapshot(self, backend: object) -> Degraded:
        """Return what metrics show.

        Args:
            backend: The model, or None before there is one.
        """
        gate = self.gate.state() if self.gate.measures else None
        results: dict[str, int] = dict(self.store.counts.copy().items())
        peak = self._watch.peak_bytes if self._watch is not None else None
        return Degraded(self._degradation.state(backend), results, gate, sessions(), peak)


def _estimates() -> Path | None:
    """Return the file of the estimates, where there is a state folder."""
    folder = state_folder()
    return folder and folder / "memory.json"
