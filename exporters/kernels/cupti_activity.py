"""Time of each kernel that a callable launches on a GPU, by CUPTI's activity records.

Measures  end less start of each kernel's record, added up by name over a run, seconds, in each of the runs of a window.
Source    cupti-python (NVIDIA's licence, not installed with us): records of CONCURRENT_KERNEL, on for the window alone.
Error     records come in steps of 32 ns (CUPTI's documentation); kernels of other threads in the window count as well.
Cost      the runs themselves; the first window stalls while CUPTI sets itself up, so measure before readiness. One
          profiler owns a card at a time.
Absent    without cupti-python, without CUDA's driver or a card, or while another profiler has it; never a time of 0.
Explains  one slower kernel on the GPU while the CPU's time stands still -> alerts/catalogue/gpu_kernel_regression.yaml

It must run in the process that launches the kernels. It was never run on a card: none was at hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from exporters.kernels.reading import Absent, Window

__all__ = ["CuptiActivity"]

_RESOLUTION_SECONDS: Final = 32e-9
_NANO: Final = 1e-9
_WARM_UP_RUNS: Final = 3
_BUFFER_BYTES: Final = 8 << 20
# Templates make names of a thousand characters; their beginnings tell them apart.
_NAME_CHARACTERS: Final = 120
# Records of one run: a call that launches more kernels is cut off, and what is left tells nothing.
_MOST_RECORDS: Final = 100_000


class CuptiActivity:
    """Times the kernels of a callable that launches work on a GPU and waits for its end."""

    name = "cupti_activity"

    def __init__(
        self,
        call: Callable[[], object],
        *,
        shape: str,
        runs: int = 30,
        load: Callable[[], Any] = lambda: importlib.import_module("cupti.cupti"),
    ) -> None:
        """Prepare; nothing is loaded or run before the first window.

        Args:
            call: Launches the work and returns when the card has done it.
            shape: Shape of its input, "32x256".
            runs: Runs of one window.
            load: Returns the module cupti.cupti; ImportError when it is not installed.
        """
        self._call, self._shape, self._runs, self._load = call, shape, runs, load
        # Of the run that goes on; bounded by _MOST_RECORDS.
        self._records: list[tuple[str, float]] = []
        self._registered = False

    def measure(self) -> Window | Absent:
        """Return the times of one window."""
        try:
            cupti = self._load()
        except ImportError:
            return Absent("not_installed", "cupti-python is missing")
        try:
            if not self._registered:
                cupti.activity_register_callbacks(_buffer, self._take)
                self._registered = True
            cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
        except Exception as error:  # noqa: BLE001 - its errors have no common class: no driver, no card, another profiler
            return Absent("no_device", f"{type(error).__name__}: {error}"[:200])
        try:
            runs = [self._run(cupti) for _ in range(_WARM_UP_RUNS + self._runs)][_WARM_UP_RUNS:]
        finally:
            cupti.activity_disable(cupti.ActivityKind.CONCURRENT_KERNEL)
        # A kernel that not every run launches has no time that could be compared.
        everywhere = set(runs[0]).intersection(*runs) if runs else set()
        if not everywhere:
            return Absent("no_times", "no kernel was launched in each run")
        seconds = {kernel: tuple(run[kernel] for run in runs) for kernel in sorted(everywhere)}
        return Window(seconds, self._shape, {"cupti": str(cupti.get_version())}, _RESOLUTION_SECONDS)

    def _run(self, cupti: Any) -> dict[str, float]:
        """Return the seconds of each kernel of one run."""
        cupti.activity_flush_all(1)
        self._records.clear()
        self._call()
        cupti.activity_flush_all(1)
        found: dict[str, float] = {}
        for kernel, seconds in self._records:
            found[kernel] = found.get(kernel, 0.0) + seconds
        return found

    def _take(self, records: Iterable[Any]) -> None:
        """Take note of records; one that ends before it starts is none."""
        for one in records:
            if one.end > one.start and len(self._records) < _MOST_RECORDS:
                self._records.append((str(one.name)[:_NAME_CHARACTERS], (one.end - one.start) * _NANO))


def _buffer() -> tuple[int, int]:
    """Return the size of a buffer for records, in bytes, and how many may be in it: as many as fit."""
    return _BUFFER_BYTES, 0
