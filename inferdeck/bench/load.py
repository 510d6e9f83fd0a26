"""One closed-loop load by wrk, and what it counted."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from inferdeck.errors import CannotRun

__all__ = ["Load", "parse", "run_wrk"]

_SCRIPT = Path(__file__).with_name("load.lua")


@dataclass(frozen=True)
class Load:
    """What the load generator saw in one window.

    Attributes:
        answered: Requests with an answer.
        sent: Requests written; those over *answered* were in flight when time was up.
        seconds: Length of the window.
        refused: Answers outside 2xx and 3xx.
        broken: Connect, read, write and time-out errors.
        p50_s: Median time to answer, in seconds; p95_s and p99_s likewise.
    """

    answered: int
    sent: int
    seconds: float
    refused: int
    broken: int
    p50_s: float
    p95_s: float
    p99_s: float

    @property
    def rps(self) -> float:
        """Return answered requests a second."""
        return self.answered / self.seconds


def parse(text: str) -> Load:
    """Read the JSON line that load.lua prints at wrk's end.

    Raises:
        ValueError: If there is none.
    """
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            found = json.loads(line)
            return Load(
                answered=found["answered"],
                # wrk asks the script for one request more, to see whether it pipelines
                sent=found["sent"] - 1,
                seconds=found["microseconds"] / 1e6,
                refused=found["refused"],
                broken=found["broken"],
                p50_s=found["p50_us"] / 1e6,
                p95_s=found["p95_us"] / 1e6,
                p99_s=found["p99_us"] / 1e6,
            )
    raise ValueError("no JSON line")


def run_wrk(wrk: Path, url: str, seconds: float, connections: int, bodies: Path | None = None) -> Load:
    """Load *url* as fast as it answers.

    Args:
        wrk: The program.
        url: http://127.0.0.1:port.
        seconds: Length, at least 1; wrk takes whole seconds.
        connections: Requests in flight at any time.
        bodies: File of JSON bodies, one a line; by default eight reviews of load.lua.

    Raises:
        CannotRun: If wrk does not run or answers nothing.
    """
    command = [str(wrk), "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(_SCRIPT), url]
    if bodies is not None:
        command += ["--", str(bodies)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 30, check=False
        )
        return parse(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"wrk did not run ({error})", "check that wrk works: wrk -v") from error
    except ValueError as error:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise CannotRun(f"wrk gave no result ({lines[-1]})", "check that wrk works: wrk -v") from error
