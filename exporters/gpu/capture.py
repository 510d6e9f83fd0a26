"""Write down what a machine's NVML answers, so that tests can replay it: `python -m exporters.gpu.capture > FILE`.

Read-only: the same calls as the reader makes, no setting is touched. Nothing that tells machines or people apart goes
in: no UUIDs, serials or bus addresses; pids are numbered anew, and programs are called program-1, program-2.

The form is that of the stub library's scenarios (tests/stub_nvml): a key and its values a line; `!N` is NVML's error N.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from exporters.gpu.nvml import state_of

__all__ = ["capture", "main"]

_FIRST_PID: Final = 1001
_CLOCKS: Final = (("clock.sm", "NVML_CLOCK_SM"), ("clock.memory", "NVML_CLOCK_MEM"))
_ECC: Final = (
    ("ecc.corrected", "NVML_MEMORY_ERROR_TYPE_CORRECTED"),
    ("ecc.uncorrected", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED"),
)


def capture(nvml: Any) -> Iterator[str]:
    """Yield the lines of a scenario.

    Args:
        nvml: The module pynvml, or what stands for it; started and stopped here.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        yield f"init !{error.value}"
        return
    try:
        yield f"driver {nvml.nvmlSystemGetDriverVersion()}"
        count = nvml.nvmlDeviceGetCount()
        yield f"count {count}"
        for index in range(count):
            yield from _card(nvml, index)
    finally:
        nvml.nvmlShutdown()


def _card(nvml: Any, index: int) -> Iterator[str]:
    """Yield the lines of one card and its MIG instances."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        yield f"{index} !{error.value}"
        return
    yield from _device(nvml, handle, str(index))
    try:
        current, pending = nvml.nvmlDeviceGetMigMode(handle)
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if current else 0
    except nvml.NVMLError as error:
        yield f"{index}.mig !{error.value}"
        return
    yield f"{index}.mig {current} {pending} {most}"
    for place in range(most):
        try:
            instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
        except nvml.NVMLError as error:
            yield f"{index}/{place} !{error.value}"
        else:
            yield from _device(nvml, instance, f"{index}/{place}")


def _device(nvml: Any, handle: Any, label: str) -> Iterator[str]:
    """Yield the lines of one handle."""
    yield _line(nvml, label, "name", lambda: nvml.nvmlDeviceGetName(handle))
    yield _line(
        nvml, label, "utilization", lambda: _fields(nvml.nvmlDeviceGetUtilizationRates(handle), "gpu", "memory")
    )
    yield _line(nvml, label, "memory", lambda: _fields(nvml.nvmlDeviceGetMemoryInfo(handle), "total", "free", "used"))
    yield _line(nvml, label, "temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
    yield _line(nvml, label, "power", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    yield _line(nvml, label, "power_limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    for key, name in _CLOCKS:
        ask = functools.partial(nvml.nvmlDeviceGetClockInfo, handle, getattr(nvml, name))
        yield _line(nvml, label, key, ask)
    yield _line(nvml, label, "throttle", lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    for key, name in _ECC:
        kind = getattr(nvml, name)
        yield _line(
            nvml, label, key, functools.partial(nvml.nvmlDeviceGetTotalEccErrors, handle, kind, nvml.NVML_AGGREGATE_ECC)
        )
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError as error:
        yield f"{label}.processes !{error.value}"
        return
    yield f"{label}.processes {len(processes)}"
    for place, process in enumerate(processes):
        used = "-" if process.usedGpuMemory is None else process.usedGpuMemory
        yield f"{label}.process {_FIRST_PID + place} {used} program-{place + 1}"


def _fields(answer: Any, *names: str) -> str:
    return " ".join(str(getattr(answer, name)) for name in names)


def _line(nvml: Any, label: str, key: str, ask: Callable[[], Any]) -> str:
    """Return one answer, or the error that stands in its place."""
    try:
        return f"{label}.{key} {ask()}"
    except nvml.NVMLError as error:
        return f"{label}.{key} !{error.value}"


def main() -> int:
    """Write a capture of this machine to stdout.

    Returns:
        Exit status: 0 written, 2 when there is nothing to capture (one line on stderr says why).
    """
    try:
        import pynvml
    except ImportError:
        sys.stderr.write("nvidia-ml-py is not installed: install inferdeck[console]\n")
        return 2
    try:
        lines = list(capture(pynvml))
    except pynvml.NVMLError as error:
        sys.stderr.write(f"NVML gives nothing to capture: {state_of(error)}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
