"""`inferdeck bench investigate`: how long a window of many rows takes, and how much memory.

Measures  the command as a process of its own, from its start to its end; its peak as the system counts it (VmHWM).
Source    rows that the real recorder wrote and the real archiver sealed, one release of eight changed at half time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inferdeck.bench.flight import REQUESTS_PER_SESSION, write_flight
from inferdeck.bench.machine import describe, versions
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["draw_investigate", "run_investigate", "shape_investigate"]

SECONDS_MAX: Final = 60.0
BYTES_MAX: Final = 2 * 10**9
"""Issue 8: a million records in under 60 s and 2 GB on two cores."""
PLANTED: Final = ("client_release", "7.3.0")

# Run in the command's process, after its work: what `ru_maxrss` of a child says begins with its parent's size.
_CHILD: Final = """
import sys
from inferdeck.cli import run
code = run(["--json", "investigate", "--since", "1d"])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
sys.stderr.write(f"\\npeak {peak}\\n")
sys.exit(code)
"""


def run_investigate(records: int, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Write rows, investigate them, and return the result in the shape of `schemas/bench_investigate.schema.json`.

    Args:
        records: Rows; rounded up to whole sessions.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If the rows cannot be written, or the command does not run.
    """
    records = -(-records // REQUESTS_PER_SESSION) * REQUESTS_PER_SESSION
    shm = Path("/dev/shm")  # noqa: S108  # the folder below it is made 0700 by tempfile
    with (
        tempfile.TemporaryDirectory(prefix="inferdeck-bench-", dir=shm if shm.is_dir() else None) as memory,
        tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as disk,
    ):
        rings, state = Path(memory) / "rings", Path(disk)
        write_flight(
            rings,
            state / "archive",
            records,
            lambda share: progress(f"writing {records:,} rows", 0.9 * share),
            unsure_from=records // 2,
        )
        progress("running `inferdeck investigate`", 0.9)
        found, seconds, peak = _command(rings, state)
    return shape_investigate(records, found, seconds, peak)


def _command(rings: Path, state: Path) -> tuple[dict[str, Any], float, int]:
    """Run the command; return its result, its seconds and its peak of memory in bytes.

    Raises:
        CannotRun: If it does not run.
    """
    ours = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        cwd=state,
        env={**ours, "INFERDECK_RING_DIR": str(rings), "INFERDECK_STATE_DIR": str(state)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    seconds = time.perf_counter() - began
    lines = done.stderr.strip().splitlines() or ["no output"]
    if done.returncode not in (0, 1) or not lines[-1].startswith("peak "):
        raise CannotRun(f"`inferdeck investigate` ended with {done.returncode}: {lines[-1]}", "run `inferdeck doctor`")
    return json.loads(done.stdout), seconds, int(lines[-1].split()[1]) * 1024


def shape_investigate(written: int, found: dict[str, Any], seconds: float, peak_bytes: int) -> dict[str, Any]:
    """Return the result.

    Args:
        written: Rows that were written.
        found: What the command told.
        seconds: How long it took.
        peak_bytes: Its peak of memory.
    """
    verdict = found["verdict"]
    right = (verdict["dimension"], verdict["value"]) == PLANTED
    passed = seconds < SECONDS_MAX and peak_bytes < BYTES_MAX and found["records"] == written and right
    return {
        "records": found["records"],
        "seconds": round(seconds, 3),
        "peak_bytes": peak_bytes,
        "summary": verdict["summary"],
        "gate": {"seconds_max": SECONDS_MAX, "bytes_max": BYTES_MAX, "slice_right": right, "passed": passed},
        "machine": describe(),
        "versions": versions(),
    }


def draw_investigate(result: dict[str, Any], console: Console) -> None:
    """Show the result.

    Args:
        result: As `run_investigate` returned it.
        console: Where.
    """
    figures = f"{result['records']:,} records in {result['seconds']:.1f} s, at most {result['peak_bytes'] / 1e6:.0f} MB"
    console.print(f"{figures}: {'passed' if result['gate']['passed'] else 'FAILED'}", style="bold", markup=False)
    console.print(f"  {result['summary']}", markup=False)
