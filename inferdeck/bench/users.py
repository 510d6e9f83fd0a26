"""`inferdeck bench users`: 10, 50 and 100 users with pauses between their requests, by locust, on the real service.

What row B15 asks: times and errors at each number of users, and whether the service's memory stays where it is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from inferdeck.bench.exporter import run_exporter
from inferdeck.bench.machine import describe, versions
from inferdeck.bench.real_service import model_or_raise, run_service
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["USERS", "draw_users", "run_users", "shape_level"]

USERS: Final = (10, 50, 100)
# requirements B16 for the P99; memory: what the allocator keeps of a burst is below it, a leak of 1 kB a request is not
P99_SECONDS_MAX: Final = 0.3
GROWTH_BYTES_MAX: Final = 32 << 20
_FILE: Final = Path(__file__).with_name("locustfile.py")


def run_users(
    model: Path, seconds: float, progress: Callable[[str, float], None], users: Sequence[int] = USERS
) -> dict[str, Any]:
    """Let users come, in ever larger numbers.

    Args:
        model: The model's folder.
        seconds: Length for each number of users, after all of them have come.
        progress: Told what is done and the share.
        users: Numbers of users.

    Raises:
        CannotRun: If locust, the model or the service is missing, or locust gave no result.
    """
    if find_spec("locust") is None:
        raise CannotRun("locust, which plays the users, is missing", "pip install 'inferdeck[load,train]'")
    model = model_or_raise(model.absolute())
    levels: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as scratch:
        folder = Path(scratch)
        with (
            run_service("users", folder, model, recorder=True) as (service, _ready),
            run_exporter("exporter", folder / "users", folder, None, 0.01),
        ):
            # The first requests bring in what is loaded late: that is no growth under load.
            _locust(service.url, 5, 2.0, folder)
            for number, count in enumerate(users):
                progress(f"{count} users", number / len(users))
                before = _resident(service.pid)
                told = _locust(service.url, count, seconds, folder)
                levels.append(shape_level(count, told, before, _resident(service.pid)))
    passed = all(level["passed"] for level in levels)
    return {
        "levels": levels,
        "gate": {"p99_s_max": P99_SECONDS_MAX, "growth_bytes_max": GROWTH_BYTES_MAX, "errors": 0, "passed": passed},
        "machine": describe(),
        "versions": versions() | {"locust": _version()},
    }


def shape_level(users: int, told: Sequence[Mapping[str, Any]], before: int, after: int) -> dict[str, Any]:
    """Return what one number of users met.

    Args:
        users: How many there were.
        told: locust's statistics, one entry for each kind of request.
        before: Resident bytes of the service before they came.
        after: And after.
    """
    times: dict[int, int] = {}
    for entry in told:
        for milliseconds, count in entry["response_times"].items():
            times[int(float(milliseconds))] = times.get(int(float(milliseconds)), 0) + int(count)
    requests = sum(int(entry["num_requests"]) for entry in told)
    errors = sum(int(entry["num_failures"]) for entry in told)
    began = min((entry["start_time"] for entry in told), default=0.0)
    ended = max((entry["last_request_timestamp"] or began for entry in told), default=0.0)
    p99_s, growth = _percentile(times, 0.99), after - before
    return {
        "users": users,
        "requests": requests,
        "rps": round(requests / max(ended - began, 1e-9), 1),
        "p50_s": _percentile(times, 0.5),
        "p95_s": _percentile(times, 0.95),
        "p99_s": p99_s,
        "errors": errors,
        "resident_bytes": after,
        "growth_bytes": growth,
        "passed": requests > 0 and not errors and p99_s <= P99_SECONDS_MAX and growth <= GROWTH_BYTES_MAX,
    }


def draw_users(result: dict[str, Any], console: Console) -> None:
    """Print a line for each number of users."""
    for level in result["levels"]:
        console.print(
            f"{level['users']:4d} users: {level['rps']:7.1f} requests/s, p50 {level['p50_s'] * 1e3:.0f} ms, "
            f"p95 {level['p95_s'] * 1e3:.0f} ms, p99 {level['p99_s'] * 1e3:.0f} ms, {level['errors']} errors, memory "
            f"{level['resident_bytes'] / 1e6:.0f} MB ({level['growth_bytes'] / 1e6:+.1f})"
        )
    gate = result["gate"]
    console.print(
        f"gate {'met' if gate['passed'] else 'MISSED'}: p99 at most {gate['p99_s_max'] * 1e3:.0f} ms, no error, memory "
        f"grows by at most {gate['growth_bytes_max'] / 1e6:.0f} MB"
    )


def _percentile(times: Mapping[int, int], share: float) -> float:
    """Return the seconds within which that share of the requests was answered; locust rounds times over 100 ms."""
    left = share * sum(times.values())
    for milliseconds in sorted(times):
        left -= times[milliseconds]
        if left <= 0:
            return milliseconds / 1000
    return 0.0


def _locust(url: str, users: int, seconds: float, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "locust", "-f", str(_FILE), "--headless", "--json", "--skip-log", "--reset-stats"]
    command += ["--users", str(users), "--spawn-rate", str(users), "--run-time", f"{max(1, round(seconds))}s"]
    try:
        done = subprocess.run(
            [*command, "--host", url, "--stop-timeout", "5"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + 120,
            check=False,
        )
        # 1 is locust's word for failed requests: they are in its statistics.
        told: list[dict[str, Any]] = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"locust did not run ({error})", "see locust --help") from error
    except ValueError as error:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise CannotRun(f"locust gave no result ({lines[-1]})", "pip install 'inferdeck[load,train]'") from error
    return told


def _resident(pid: int) -> int:
    """Return the resident bytes of the service with its workers."""
    try:
        process = psutil.Process(pid)
        return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
    except psutil.NoSuchProcess as error:
        raise CannotRun("the service ended under the load", "see its log") from error


def _version() -> str:
    from importlib.metadata import version

    return version("locust")
