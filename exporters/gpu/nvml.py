"""GPU devices, by NVML.

Measures  utilisation (ratio), memory (bytes), temperature (celsius), power (watts), clocks (hertz), reasons of
          throttling, memory errors (of the card's life), memory by process (bytes).
Source    libnvidia-ml.so.1 of the driver, through nvidia-ml-py (module pynvml); read-only calls alone.
Error     utilisation is the driver's: a share of the last 1/6 to 1 s in which anything ran, not how full the card was.
Cost      about 15 library calls a card, from a thread of its own (sampler.py), never on a scrape or a request.
Absent    each reading is `Absent(state)` on its own: not supported (MIG, old cards), no permission; a card that is lost
          has none at all; without driver or library there are no cards. Never 0, never the last value again.
Explains  a full, lost, hot, throttled or shared card -> runbooks
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from exporters.gpu.reading import Absent, Card, CardProcess, Snapshot, Values
from exporters.names_gpu import CLOCKS, ECC_KINDS, GPU_LIMIT, READINGS, THROTTLES

__all__ = ["NvmlReader", "state_of"]

# nvmlReturn_t of nvml.h -> what it means to who watches.
_STATES: Final[Mapping[int, str]] = {
    1: "driver_gone",  # uninitialized: the driver went away under us
    3: "not_supported",
    4: "no_permission",
    6: "no_device",
    9: "driver_gone",
    12: "library_missing",
    13: "not_supported",  # a function that this driver's library does not have
    15: "lost",
    16: "reset_required",
    18: "driver_mismatch",
}
# A card that says one of these gives no values at all, whatever other calls return.
_OF_THE_CARD: Final = frozenset({"lost", "reset_required", "driver_gone"})
_MILLI: Final = 1e-3
_MEGA: Final = 1e6
_PERCENT: Final = 1e-2


class NvmlReader:
    """Reads all cards; begins anew when the driver comes back."""

    def __init__(self, load: Callable[[], Any] = lambda: importlib.import_module("pynvml")) -> None:
        """Prepare; nothing is loaded before the first look.

        Args:
            load: Returns the module pynvml, or what stands for it; ImportError when it is not installed.
        """
        self._load = load
        self._nvml: Any = None
        # Cards that were ever seen, so that one that falls off the bus is missed. Bounded by GPU_LIMIT.
        self._seen: dict[str, str] = {}

    def read(self) -> Snapshot:
        """Return what all cards say now; never raises for what NVML answers."""
        try:
            nvml = self._load()
        except ImportError:
            return self._nothing("library_missing")
        try:
            if self._nvml is None:
                nvml.nvmlInit()
                self._nvml = nvml
            driver = _text(nvml.nvmlSystemGetDriverVersion())
            cards = tuple(self._cards(nvml, nvml.nvmlDeviceGetCount()))
        except nvml.NVMLError as error:
            self.close()
            return self._nothing(state_of(error))
        if all(card.state in _OF_THE_CARD for card in cards):
            # With every card gone the driver may be, too: only a new start of NVML sees it come back.
            self.close()
        if not cards:
            return Snapshot("no_device", driver)
        return Snapshot("ok", driver, cards)

    def close(self) -> None:
        """Give NVML back."""
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                # Shut down already: the driver that would have had to answer is gone.
                return

    def _nothing(self, state: str) -> Snapshot:
        """Return that NVML does not answer, and so neither does any card that was seen."""
        return Snapshot(state, "", tuple(Card(label, name, state) for label, name in self._seen.items()))

    def _cards(self, nvml: Any, count: int) -> Iterator[Card]:
        """Yield every card, its MIG instances, and those that were seen and are not there any more."""
        found: set[str] = set()
        for index in range(count):
            for card in _card_and_instances(nvml, index):
                if card.label not in self._seen and len(self._seen) >= GPU_LIMIT:
                    continue
                found.add(card.label)
                name = self._seen[card.label] = card.name or self._seen.get(card.label, "")
                yield Card(card.label, name, card.state, card.readings, card.processes)
        for label in [label for label in self._seen if label not in found]:
            if "/" in label and label.split("/")[0] in found:
                # An instance that its owner took apart is no loss; a card that stops being counted is.
                del self._seen[label]
            else:
                yield Card(label, self._seen[label], "lost")


def state_of(error: Exception) -> str:
    """Return the word for an NVMLError."""
    return _STATES.get(int(getattr(error, "value", 999)), "error")


def _card_and_instances(nvml: Any, index: int) -> Iterator[Card]:
    """Yield one card and what it is divided into."""
    label = str(index)
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        yield Card(label, "", state_of(error))
        return
    yield _card(nvml, handle, label)
    for place, instance in _instances(nvml, handle):
        yield _card(nvml, instance, f"{label}/{place}")


def _instances(nvml: Any, handle: Any) -> Iterator[tuple[int, Any]]:
    """Yield place and handle of each MIG instance; none where the card is whole."""
    try:
        current, _pending = nvml.nvmlDeviceGetMigMode(handle)
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if current else 0
    except nvml.NVMLError:
        return
    for place in range(most):
        try:
            yield place, nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
        except nvml.NVMLError:
            # Places need not be filled in a row.
            continue


def _card(nvml: Any, handle: Any, label: str) -> Card:
    """Return what one card says; one that is lost in the middle of it says nothing."""
    readings: dict[str, Values | Absent] = {}
    processes: tuple[CardProcess, ...] = ()
    try:
        name = _text(nvml.nvmlDeviceGetName(handle))
    except nvml.NVMLError as error:
        return Card(label, "", state_of(error))
    for reading in READINGS:
        try:
            if reading == "processes":
                processes, readings[reading] = _processes(nvml, handle), {}
            else:
                readings[reading] = _READ[reading](nvml, handle)
        except nvml.NVMLError as error:
            if (state := state_of(error)) in _OF_THE_CARD:
                return Card(label, name, state)
            readings[reading] = Absent(state)
    return Card(label, name, "ok", readings, processes)


def _utilization(nvml: Any, handle: Any) -> Values:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return {
        ("gpu_utilization_ratio", ()): rates.gpu * _PERCENT,
        ("gpu_memory_busy_ratio", ()): rates.memory * _PERCENT,
    }


def _memory(nvml: Any, handle: Any) -> Values:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        ("gpu_memory_size_bytes", ()): float(memory.total),
        ("gpu_memory_used_bytes", ()): float(memory.used),
        ("gpu_memory_free_bytes", ()): float(memory.free),
    }


def _temperature(nvml: Any, handle: Any) -> Values:
    celsius = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
    return {("gpu_temperature_celsius", ()): float(celsius)}


def _power(nvml: Any, handle: Any) -> Values:
    return {("gpu_power_watts", ()): nvml.nvmlDeviceGetPowerUsage(handle) * _MILLI}


def _power_limit(nvml: Any, handle: Any) -> Values:
    return {("gpu_power_limit_watts", ()): nvml.nvmlDeviceGetEnforcedPowerLimit(handle) * _MILLI}


def _clocks(nvml: Any, handle: Any) -> Values:
    kinds = zip(CLOCKS, (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM), strict=True)
    return {("gpu_clock_hertz", (word,)): nvml.nvmlDeviceGetClockInfo(handle, kind) * _MEGA for word, kind in kinds}


def _throttle(nvml: Any, handle: Any) -> Values:
    # The older name of the call: newer drivers keep it, older ones have no other.
    bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {("gpu_throttle_state", (word,)): float(bits >> place & 1) for place, word in enumerate(THROTTLES)}


def _ecc(nvml: Any, handle: Any) -> Values:
    kinds = zip(
        ECC_KINDS, (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED), strict=True
    )
    counter = nvml.NVML_AGGREGATE_ECC
    return {
        ("gpu_ecc_errors_total", (word,)): float(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter))
        for word, kind in kinds
    }


_READ: Final[Mapping[str, Callable[[Any, Any], Values]]] = {
    "utilization": _utilization,
    "memory": _memory,
    "temperature": _temperature,
    "power": _power,
    "power_limit": _power_limit,
    "clocks": _clocks,
    "throttle": _throttle,
    "ecc": _ecc,
}


def _processes(nvml: Any, handle: Any) -> tuple[CardProcess, ...]:
    """Return who computes on the card."""
    found = []
    for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
        used = Absent("not_supported") if process.usedGpuMemory is None else int(process.usedGpuMemory)
        found.append(CardProcess(int(process.pid), _program(nvml, int(process.pid)), used))
    return tuple(found)


def _program(nvml: Any, pid: int) -> str:
    """Return a program's file name as the driver knows it: arguments could hold secrets, and folders tell nobody."""
    try:
        path = _text(nvml.nvmlSystemGetProcessName(pid))
    except nvml.NVMLError:
        return "unknown"
    return PurePath(path.split(" ")[0]).name[:64] or "unknown"


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
