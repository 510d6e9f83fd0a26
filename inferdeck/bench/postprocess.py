"""`inferdeck bench postprocess`: what a verdict costs in process, and over the Unix socket.

Both are asked in turn in one process, one request at a time, so that the ratio does not hang on what else runs.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferdeck.bench.machine import describe, versions
from inferdeck.bench.windows import quartiles
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

    from service.postprocess.confidence import Postprocess

__all__ = ["draw_postprocess", "run_postprocess"]

_LOGITS, _LABELS = [-1.0, 0.25, 3.5], ["negative", "neutral", "positive"]
_CALLS = 200
_START_SECONDS = 30.0


def run_postprocess(rounds: int, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Time verdicts from both places.

    Args:
        rounds: Of 200 verdicts each from either place; at least 2. A first one that only warms up is not counted.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If the app does not start, or its socket did not answer every time.
    """
    with tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as folder:
        path = Path(folder) / "post.sock"
        app = subprocess.Popen([sys.executable, "-m", "service.postprocess", str(path)])
        try:
            _wait_for(path, app)
            local, remote = asyncio.run(_measure(path, rounds, progress))
        finally:
            app.terminate()
            app.wait(_START_SECONDS)
    return {
        "process_us": round(statistics.median(local), 2),
        "socket_us": round(statistics.median(remote), 1),
        "added_us": round(statistics.median(remote) - statistics.median(local), 1),
        "socket_us_quartiles": [round(value, 1) for value in quartiles(remote)],
        "rounds": rounds,
        "machine": describe(),
        "versions": versions(),
    }


def draw_postprocess(result: dict[str, Any], console: Console) -> None:
    """Print the result in one line."""
    low, high = result["socket_us_quartiles"]
    console.print(
        f"a verdict takes {result['process_us']:.1f} us in process, {result['socket_us']:.0f} us over the Unix socket "
        f"(quartiles {low:.0f} .. {high:.0f}, {result['rounds']} rounds of {_CALLS})"
    )


async def _measure(path: Path, rounds: int, progress: Callable[[str, float], None]) -> tuple[list[float], list[float]]:
    from service.postprocess.confidence import InProcess
    from service.postprocess.remote import OverSocket

    local, remote = InProcess(), OverSocket(path, timeout_seconds=10.0)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        progress(f"round {number} of {rounds}" if number else "warming up", number / (rounds + 1))
        for place, found in ((local, times[0]), (remote, times[1])):
            found.append(await _verdict_us(place, "process" if place is local else "socket"))
    await remote.close()
    return times[0][1:], times[1][1:]


async def _verdict_us(place: Postprocess, expected: str) -> float:
    """Return the mean microseconds of a verdict.

    Raises:
        CannotRun: If one came from elsewhere: it would be a figure of something else.
    """
    began = time.perf_counter_ns()
    for _ in range(_CALLS):
        _, where = await place.judge(_LOGITS, 1.3, _LABELS)
        if where != expected:
            raise CannotRun(f"a verdict came from {where}, not from {expected}", "try again on a quieter machine")
    return (time.perf_counter_ns() - began) / _CALLS / 1000


def _wait_for(path: Path, app: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while not path.exists():
        if app.poll() is not None or time.monotonic() > until:
            raise CannotRun("python -m service.postprocess did not start", "pip install 'inferdeck[service]'")
        time.sleep(0.05)
