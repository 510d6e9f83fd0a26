"""`inferdeck bench start`: how long the real service takes from nothing to ready, and what of it is imports."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferdeck.bench.machine import describe, versions
from inferdeck.bench.real_service import model_or_raise, run_service
from inferdeck.bench.windows import quartiles
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["READY_SECONDS_MAX", "draw_start", "run_start", "shape_start"]

READY_SECONDS_MAX = 2.0  # issue 3, item 2
_IMPORT = "import time; t = time.perf_counter(); import service.app; print(time.perf_counter() - t)"


def run_start(model: Path, runs: int, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Start the service *runs* times, each with a folder of its own, and time it.

    Args:
        model: The model's folder.
        runs: At least 1; a first start that only warms the file cache is not counted.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If the model is missing or the service does not start.
    """
    model = model_or_raise(model.absolute())
    ready: list[float] = []
    imported: list[float] = []
    with tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as scratch:
        for number in range(runs + 1):
            progress(f"start {number} of {runs}" if number else "warming the file cache", number / (runs + 1))
            with run_service(f"service-{number}", Path(scratch), model, recorder=True) as (_child, seconds):
                ready.append(seconds)
            imported.append(_import_seconds(Path(scratch)))
    return shape_start(ready[1:], imported[1:])


def shape_start(ready: list[float], imported: list[float]) -> dict[str, Any]:
    """Return the result: medians, quartiles and the gate.

    Args:
        ready: Seconds from start to ready, one per run.
        imported: Seconds of the imports alone, one per run.
    """
    ready_s = statistics.median(ready)
    return {
        "ready_s": round(ready_s, 3),
        "ready_s_quartiles": [round(value, 3) for value in quartiles(ready)],
        "import_s": round(statistics.median(imported), 3),
        "runs": len(ready),
        "gate": {"ready_s_max": READY_SECONDS_MAX, "passed": ready_s < READY_SECONDS_MAX},
        "machine": describe(),
        "versions": versions(),
    }


def draw_start(result: dict[str, Any], console: Console) -> None:
    """Print the result in two lines."""
    low, high = result["ready_s_quartiles"]
    console.print(
        f"ready after {result['ready_s']:.2f} s (quartiles {low:.2f} .. {high:.2f}, {result['runs']} starts), "
        f"of which imports {result['import_s']:.2f} s"
    )
    word = "met" if result["gate"]["passed"] else "MISSED"
    console.print(f"gate {word}: under {result['gate']['ready_s_max']:.0f} s")


def _import_seconds(folder: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    try:
        return float(done.stdout)
    except ValueError as error:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise CannotRun(f"the service cannot be imported: {lines[-1]}", "pip install 'inferdeck[service]'") from error
