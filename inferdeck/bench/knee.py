"""`inferdeck bench knee`: the load beyond which times grow faster than answers do, and the limit that follows.

Closed-loop load with ever more connections. The knee is where throughput divided by time to answer is largest:
Kleinrock's power (L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer
communications", ICC 1979); beyond it requests wait more than they get done. Throughput is the median of the rounds.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inferdeck.bench.bodies import write_bodies
from inferdeck.bench.load import Load, run_wrk
from inferdeck.bench.machine import describe, versions
from inferdeck.bench.real_service import model_or_raise, run_service
from inferdeck.bench.wrk_install import ensure_wrk
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "STEPS",
    "Step",
    "draw_knee",
    "find_knee",
    "measure_knee_steps",
    "measure_steps",
    "plot_knee",
    "run_knee",
    "write_limit",
]

STEPS: Final = (1, 2, 4, 8, 16, 32, 64, 100)
_SETTING: Final = re.compile(r"^knee_rps:[^\n#]*", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """What one number of connections met: medians over the rounds.

    Attributes:
        connections: Requests in flight at any time.
        rps: Answered requests a second.
        p50_s: Median time to answer, seconds; p95_s likewise.
        refused: Answers that are none, all rounds together.
    """

    connections: int
    rps: float
    p50_s: float
    p95_s: float
    refused: int

    @property
    def power(self) -> float:
        """Kleinrock's power: answers a second, per second of waiting for one."""
        return self.rps / self.p95_s if self.p95_s else 0.0


def find_knee(steps: Sequence[Step]) -> Step:
    """Return the step with the largest power.

    Raises:
        CannotRun: If there is none, or none answered.
    """
    best = max(steps, key=lambda step: step.power, default=None)
    if best is None or best.power <= 0:
        raise CannotRun("nothing was answered", "see why: inferdeck status, or the service's log")
    return best


def measure_steps(
    wrk: Path, url: str, bodies: Path, *, rounds: int, seconds: float, progress: Callable[[str, float], None]
) -> list[Step]:
    """Load a service with ever more connections.

    Args:
        wrk: The load generator.
        url: Where the service is.
        bodies: File of JSON bodies.
        rounds: Each goes through all steps.
        seconds: Length of a window.
        progress: Told what is done and the share.
    """
    loads: Mapping[int, list[Load]] = {connections: [] for connections in STEPS}
    run_wrk(wrk, url, 1.0, 8, bodies)
    for number in range(rounds):
        for at, connections in enumerate(STEPS):
            share = (number * len(STEPS) + at) / (rounds * len(STEPS))
            progress(f"round {number + 1} of {rounds}: {connections} connections", share)
            loads[connections].append(run_wrk(wrk, url, seconds, connections, bodies))
    return [_step(connections, found) for connections, found in loads.items()]


def _step(connections: int, loads: Sequence[Load]) -> Step:
    return Step(
        connections,
        statistics.median(load.rps for load in loads),
        statistics.median(load.p50_s for load in loads),
        statistics.median(load.p95_s for load in loads),
        sum(load.refused + load.broken for load in loads),
    )


def measure_knee_steps(
    wrk: Path,
    folder: Path,
    model: Path,
    bodies: Path,
    *,
    progress: Callable[[str, float], None],
    rounds: int = 1,
    seconds: float = 1.0,
) -> list[Step]:
    """Load the real service, one worker and no limit, with ever more connections.

    Args:
        wrk: The load generator.
        folder: For logs and rows.
        model: The model's folder, absolute.
        bodies: File of JSON bodies.
        progress: Told what is done and the share.
        rounds: Each goes through all steps.
        seconds: Length of a window.
    """
    unlimited = {"INFERDECK_SERVICE_KNEE_RPS": "0"}
    with run_service("knee", folder, model, recorder=True, settings=unlimited) as (service, _ready):
        return measure_steps(wrk, service.url, bodies, rounds=rounds, seconds=seconds, progress=progress)


def run_knee(model: Path, rounds: int, seconds: float, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Find the knee of the real service, one worker, no limit.

    Args:
        model: The model's folder.
        rounds: Each goes through all numbers of connections.
        seconds: Length of a window.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If wrk, the model or the service is missing, or it answered nothing.
    """
    wrk, model = ensure_wrk(), model_or_raise(model.absolute())
    with tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as scratch:
        folder = Path(scratch)
        bodies = write_bodies(folder / "bodies.jsonl")
        steps = measure_knee_steps(wrk, folder, model, bodies, rounds=rounds, seconds=seconds, progress=progress)
    knee = find_knee(steps)
    return {
        "knee_rps": round(knee.rps, 1),
        "knee_connections": knee.connections,
        "steps": [
            {
                "connections": step.connections,
                "rps": round(step.rps, 1),
                "p50_s": step.p50_s,
                "p95_s": step.p95_s,
                "power": round(step.power, 1),
                "refused": step.refused,
            }
            for step in steps
        ],
        "rounds": rounds,
        "machine": describe(),
        "versions": versions(),
    }


def write_limit(path: Path, knee_rps: float) -> None:
    """Write `knee_rps` into a profile's YAML file; all else in it stays as it is.

    Args:
        path: The file.
        knee_rps: Requests a second.

    Raises:
        CannotRun: If the file cannot be read or written.
    """
    line = f"knee_rps: {knee_rps:.0f}"
    try:
        text = path.read_text(encoding="utf-8")
        # The blanks before a comment go with the old value, so one of them is given back.
        new, found = _SETTING.subn(line + " ", text, count=1)
        new = re.sub(rf"^({re.escape(line)}) +$", r"\1", new, flags=re.MULTILINE)
        if not found:
            new = text + ("" if not text or text.endswith("\n") else "\n") + line + "\n"
        path.write_text(new, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"{path} cannot be written: {error}", "name the YAML file of a profile") from error


def draw_knee(result: dict[str, Any], console: Console) -> None:
    """Print a line for each step, and the knee."""
    for step in result["steps"]:
        mark = "  <- knee" if step["connections"] == result["knee_connections"] else ""
        console.print(
            f"{step['connections']:4d} connections: {step['rps']:7.0f} requests/s, p50 {step['p50_s'] * 1e3:.1f} ms, "
            f"p95 {step['p95_s'] * 1e3:.1f} ms{mark}"
        )
    console.print(
        f"knee_rps: {result['knee_rps']:.0f} (a worker lets in knee_share of it, 0.7 by default; "
        "INFERDECK_SERVICE_KNEE_RPS, or --write FILE)"
    )


def plot_knee(result: dict[str, Any], target: Path) -> None:
    """Draw throughput and time to answer over the connections into a PNG or SVG file.

    Raises:
        CannotRun: If the file cannot be written.
    """
    from matplotlib.figure import Figure

    steps = result["steps"]
    connections = [step["connections"] for step in steps]
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    left.plot(connections, [step["rps"] for step in steps], "o-", color="tab:blue")
    right.plot(connections, [step["p95_s"] * 1e3 for step in steps], "s--", color="tab:orange")
    left.axvline(result["knee_connections"], color="grey", linestyle=":")
    left.set_xscale("log", base=2)
    left.set_xticks(connections, [str(one) for one in connections])
    left.set_xlabel("requests in flight")
    left.set_ylabel("requests a second", color="tab:blue")
    right.set_ylabel("p95, ms", color="tab:orange")
    left.set_ylim(bottom=0)
    right.set_ylim(bottom=0)
    left.set_title(f"knee at {result['knee_rps']:.0f} requests/s, {result['knee_connections']} in flight")
    try:
        figure.savefig(target)
    except (OSError, ValueError) as error:
        raise CannotRun(
            f"{target} cannot be drawn: {error}", "name a .png or .svg file in a folder of yours"
        ) from error
