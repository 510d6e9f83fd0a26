"""Time per node of an ONNX model, by ONNX Runtime's own profile.

Measures  time of each node, seconds, in each of the runs of one window.
Source    `<node>_kernel_time` events of a profiled session of its own, on a canary of fixed shape (a profile ends for
          good with end_profiling, so the session that serves is never profiled).
Error     1 us resolution: below about 10 us a node says nothing (32x256 is the smallest shape that does); profiling
          costs about 4.5 us a node, the same in baseline and window.
Cost      one session, 90 runs and a file of 1 MB a window, 90 ms of CPU; never in the service's process.
Absent    without onnxruntime, without the model's file, or with a graph that the canary does not fit.
Explains  one slower kernel after an upgrade or with a new graph -> alerts/catalogue/gpu_kernel_regression.yaml
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from exporters.kernels.reading import Absent, Window

__all__ = ["OrtCanary", "times_of"]

_RESOLUTION_SECONDS: Final = 1e-6
_ENDING: Final = "_kernel_time"
# The first runs of a burst fill caches and arenas: they are another thing than the runs that follow.
_WARM_UP_RUNS: Final = 3
_BURST_RUNS: Final = 6
# Bursts with pauses, not one stretch of 20 ms, all of which a neighbour could disturb; nor a pause before each run,
# which would measure cold caches (a table's Gather: 420 us instead of 75).
_PAUSE_SECONDS: Final = 0.3
_HIGHEST_ID: Final = 1000
_ELEMENTS: Final = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OrtCanary:
    """Runs a model's graph on a fixed input, profiled."""

    name = "ort_profile"

    def __init__(
        self,
        model: Path,
        *,
        batch: int = 32,
        tokens: int = 256,
        bursts: int = 10,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        """Prepare; nothing is loaded before the first window.

        Args:
            model: The ONNX file.
            batch: Rows of the canary.
            tokens: Its width.
            bursts: Bursts of one window, of 6 runs each.
            pause_seconds: Time between two bursts.
        """
        self._pause = pause_seconds
        self._model = model
        self._batch, self._tokens, self._bursts = batch, tokens, bursts

    def measure(self) -> Window | Absent:
        """Return the times of one window."""
        try:
            import onnxruntime
        except ImportError:
            return Absent("not_installed", "onnxruntime is missing: install inferdeck[service]")
        if not self._model.is_file():
            return Absent("no_model", f"no model at {self._model}")
        with tempfile.TemporaryDirectory(prefix="inferdeck-canary-") as folder:
            try:
                events = self._profile(onnxruntime, folder)
            except Exception as error:  # noqa: BLE001 - onnxruntime's errors have no common class; the probe alone is lost
                return Absent("error", f"{type(error).__name__}: {error}"[:200])
        seconds = times_of(events, self._bursts)
        if not seconds:
            return Absent("no_times", "the profile holds no node that ran in each run")
        environment = {"runtime": f"onnxruntime {onnxruntime.__version__}", "provider": "CPUExecutionProvider"}
        return Window(seconds, f"{self._batch}x{self._tokens}", environment, _RESOLUTION_SECONDS)

    def _profile(self, onnxruntime: Any, folder: str) -> list[dict[str, Any]]:
        """Run the canary in a session of its own and return the profile's events."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
        feeds = {one.name: self._input(one.type, one.shape) for one in session.get_inputs()}
        for _ in range(self._bursts):
            time.sleep(self._pause)
            for _ in range(_WARM_UP_RUNS + _BURST_RUNS):
                session.run(None, feeds)
        found: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        return found

    def _input(self, element: str, shape: list[Any]) -> NDArray[Any]:
        """Return the same numbers each time: ids must spread over their table as real ones do."""
        free = iter((self._batch, self._tokens))
        sizes = [size if isinstance(size, int) else next(free, 1) for size in shape]
        kind = _ELEMENTS[element]
        numbers = np.random.default_rng(7)
        if kind is np.float32:
            return numbers.random(sizes, dtype=np.float32)
        return numbers.integers(1, _HIGHEST_ID, sizes).astype(kind)


def times_of(events: list[dict[str, Any]], bursts: int) -> dict[str, tuple[float, ...]]:
    """Return each node's times in the runs that count, seconds; nodes that did not run in each are left out.

    Args:
        events: A profile as ONNX Runtime writes it.
        bursts: How often warm-up and counted runs followed each other.
    """
    found: dict[str, list[float]] = {}
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith(_ENDING):
            found.setdefault(name.removesuffix(_ENDING), []).append(float(event["dur"]) * _RESOLUTION_SECONDS)
    burst = _WARM_UP_RUNS + _BURST_RUNS
    return {
        name: tuple(time for place, time in enumerate(times) if place % burst >= _WARM_UP_RUNS)
        for name, times in found.items()
        if len(times) == bursts * burst
    }
