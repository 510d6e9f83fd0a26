"""Time of a callable on a GPU, by CUDA events around it.

Measures  time between two events on the current stream, seconds, in each of the runs of one window.
Source    torch.cuda.Event(enable_timing=True): the GPU's own clock, so waiting on the CPU is not in it.
Error     about 0.5 us (CUDA's documentation of cudaEventElapsedTime); one time for all kernels of the callable.
Cost      the runs themselves and one synchronisation a window.
Absent    without torch, or without a device that it can use.
Explains  a model call that got slower on the GPU alone, while the CPU's time stands still
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from exporters.kernels.reading import Absent, Window

__all__ = ["CudaEvents"]

_RESOLUTION_SECONDS: Final = 0.5e-6
_MILLI: Final = 1e-3
_WARM_UP_RUNS: Final = 3


class CudaEvents:
    """Times a callable that launches work on a GPU."""

    name = "cuda_events"

    def __init__(
        self,
        call: Callable[[], object],
        *,
        kernel: str,
        shape: str,
        runs: int = 30,
        load: Callable[[], Any] = lambda: importlib.import_module("torch"),
    ) -> None:
        """Prepare; nothing runs before the first window.

        Args:
            call: Launches the work on the current stream.
            kernel: Name under which its time is told.
            shape: Shape of its input, "32x256".
            runs: Runs of one window.
            load: Returns the module torch; ImportError when it is not installed.
        """
        self._call, self._kernel, self._shape, self._runs, self._load = call, kernel, shape, runs, load

    def measure(self) -> Window | Absent:
        """Return the times of one window."""
        try:
            torch = self._load()
        except ImportError:
            return Absent("not_installed", "torch is missing")
        if not torch.cuda.is_available():
            return Absent("no_device", "torch sees no CUDA device")
        for _ in range(_WARM_UP_RUNS):
            self._call()
        pairs = []
        for _ in range(self._runs):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            self._call()
            end.record()
            pairs.append((start, end))
        torch.cuda.synchronize()
        seconds = tuple(start.elapsed_time(end) * _MILLI for start, end in pairs)
        environment = {
            "runtime": f"torch {torch.__version__}",
            "cuda": str(torch.version.cuda),
            "device": str(torch.cuda.get_device_name()),
        }
        return Window({self._kernel: seconds}, self._shape, environment, _RESOLUTION_SECONDS)
