"""`inferdeck bench trace`: how long it takes to find a session or a trace among a million requests.

Measures  the look-up in this process, from nothing: every one opens ring files and segments anew, so that building
          an index counts; and `inferdeck trace` as a command, from its start to its end.
Source    rows that the real recorder wrote and the real archiver sealed: the newest in the rings, all others sealed.
Error     the files are in the system's cache, as those of a running service are.
Absent    Jaeger: null with the reason, where there is none to be started (inferdeck/bench/jaeger_figure.py).
"""

from __future__ import annotations

import json
import os
import random
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporters.answer import Question, answer
from inferdeck.bench.flight import REQUESTS_PER_SESSION, Written, session_id, write_flight
from inferdeck.bench.jaeger_figure import SECONDS_MAX as JAEGER_SECONDS_MAX
from inferdeck.bench.jaeger_figure import JaegerFigure, measure_jaeger
from inferdeck.bench.machine import describe, versions
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["COMMAND_SECONDS_MAX", "LOOKUP_SECONDS_MAX", "Found", "draw_look_ups", "run_look_ups", "shape_look_ups"]

# issue 7, "Figures"
LOOKUP_SECONDS_MAX: Final = 0.05
COMMAND_SECONDS_MAX: Final = 1.0
KINDS: Final = ("present", "absent", "oldest")
# Sessions that count as oldest: the first that were written, all of them in the oldest segment.
_OLDEST: Final = 1000
JAEGER_LOOK_UPS: Final = 10


@dataclass
class Found:
    """What was measured.

    Attributes:
        written: The rows.
        sessions: Kind of id -> seconds of each look-up by session.
        traces: The same by trace id.
        commands: Seconds of each command.
        command_cpu: CPU seconds of each command, which other work on the machine hardly changes.
        wrong: Answers that were not what was written.
        jaeger: Look-ups in a Jaeger that holds traces.
    """

    written: Written
    sessions: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    traces: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    commands: list[float] = field(default_factory=list)
    command_cpu: list[float] = field(default_factory=list)
    wrong: int = 0
    jaeger: JaegerFigure = field(default_factory=lambda: JaegerFigure(missing="not asked for"))


def run_look_ups(
    records: int,
    look_ups: int,
    commands: int,
    progress: Callable[[str, float], None],
    seed: int = 1,
    *,
    jaeger_traces: int = 0,
) -> dict[str, Any]:
    """Write rows, look some of them up, and return the result in the shape of `schemas/bench_trace.schema.json`.

    Args:
        records: Rows to write; rounded up to whole sessions.
        look_ups: Of each kind of id, by session and by trace.
        commands: How often the command is run.
        progress: Told what is done and the share.
        seed: Draws the ids.
        jaeger_traces: Traces to fill a Jaeger with; 0 for none.

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
        archive = state / "archive"
        written = write_flight(
            rings, archive, records, lambda share: progress(f"writing {records:,} rows", 0.8 * share)
        )
        found = Found(written)
        draw = random.Random(seed)
        progress("looking up", 0.8)
        _look_up(found, rings, archive, look_ups, draw)
        for number in range(commands):
            progress("running `inferdeck trace`", 0.85 + 0.15 * number / commands)
            _command(found, rings, state, session_id(draw.randrange(records // REQUESTS_PER_SESSION)))
    found.jaeger = measure_jaeger(
        jaeger_traces, JAEGER_LOOK_UPS, lambda share: progress(f"sending {jaeger_traces:,} traces to Jaeger", share)
    )
    return shape_look_ups(found)


def shape_look_ups(found: Found) -> dict[str, Any]:
    """Return the result: medians, and the gate; what was not measured is null."""
    ids = {kind: _median(found.sessions[kind]) for kind in KINDS}
    trace_ids = {kind: _median(found.traces[kind]) for kind in KINDS}
    command = _median(found.commands)
    slowest = max((value for value in (*ids.values(), *trace_ids.values()) if value is not None), default=None)
    quick = slowest is not None and slowest <= LOOKUP_SECONDS_MAX
    written = found.written
    return {
        "records": written.rows,
        "lookup_s": {
            "ring": _median([value for values in found.sessions.values() for value in values]),
            "command": command,
            "jaeger": found.jaeger.median,
        },
        "jaeger_missing": found.jaeger.missing,
        "jaeger": {"traces": found.jaeger.traces, "rss_bytes": found.jaeger.rss_bytes, "wrong": found.jaeger.wrong},
        "ids": ids,
        "trace_ids": trace_ids,
        "bytes_per_record": round(written.archive_bytes / max(1, written.archived), 1),
        "archive": {"rows": written.archived, "bytes": written.archive_bytes, "segments": written.segments},
        "look_ups": len(found.sessions["present"]),
        "commands": len(found.commands),
        "command_cpu_s": _median(found.command_cpu),
        "wrong": found.wrong,
        "gate": {
            "lookup_s_max": LOOKUP_SECONDS_MAX,
            "command_s_max": COMMAND_SECONDS_MAX,
            "jaeger_s_max": JAEGER_SECONDS_MAX,
            "passed": quick
            and not found.wrong + found.jaeger.wrong
            and (command is None or command < COMMAND_SECONDS_MAX)
            and (found.jaeger.median is None or found.jaeger.median < JAEGER_SECONDS_MAX),
        },
        "machine": describe(),
        "versions": versions(),
    }


def draw_look_ups(result: dict[str, Any], console: Console) -> None:
    """Print the result in a few lines."""
    archive, gate = result["archive"], result["gate"]
    console.print(
        f"{result['records']:,} requests, {archive['rows']:,} of them in {archive['segments']} segments of the archive "
        f"at {result['bytes_per_record']:.0f} bytes each"
    )
    for what, key in (("session", "ids"), ("trace", "trace_ids")):
        times = ", ".join(f"{kind} {result[key][kind] * 1e3:.1f} ms" for kind in KINDS)
        console.print(f"a {what} is found in: {times} (medians of {result['look_ups']})")
    if (cpu := result["command_cpu_s"]) is not None:
        console.print(f"`inferdeck trace` as a command: {result['lookup_s']['command']:.2f} s, of CPU {cpu:.2f} s")
    if result["jaeger_missing"]:
        console.print(f"Jaeger: not measured, {result['jaeger_missing']}")
    else:
        held = result["jaeger"]
        console.print(
            f"a session among {held['traces']:,} traces in Jaeger: {result['lookup_s']['jaeger'] * 1e3:.0f} ms, "
            f"and {held['rss_bytes'] >> 20} MiB of its memory"
        )
    word = "met" if gate["passed"] else "MISSED"
    console.print(
        f"gate {word}: look-ups at most {gate['lookup_s_max'] * 1e3:.0f} ms, the command under "
        f"{gate['command_s_max']:.0f} s, {result['wrong']} wrong answers"
    )


def _median(values: list[float]) -> float | None:
    return round(statistics.median(values), 6) if values else None


def _look_up(found: Found, rings: Path, archive: Path, look_ups: int, draw: random.Random) -> None:
    """Look up ids of each kind in turn, so that what the machine does meanwhile meets all alike."""
    sessions = found.written.rows // REQUESTS_PER_SESSION
    for _ in range(look_ups):
        asked = {
            "present": (session_id(draw.randrange(sessions)), REQUESTS_PER_SESSION),
            "absent": (session_id(sessions + draw.randrange(sessions)), 0),
            "oldest": (session_id(draw.randrange(min(_OLDEST, sessions))), REQUESTS_PER_SESSION),
        }
        for kind, (session, expected) in asked.items():
            trace_ids, seconds = _timed(Question(session_id=session), rings, archive)
            found.sessions[kind].append(seconds)
            found.wrong += len(set(trace_ids)) != expected
            wanted = draw.choice(trace_ids) if trace_ids else secrets.token_hex(16)
            trace_ids, seconds = _timed(Question(trace_id=wanted), rings, archive)
            found.traces[kind].append(seconds)
            found.wrong += trace_ids != ([wanted] if expected else [])


def _timed(question: Question, rings: Path, archive: Path) -> tuple[list[str], float]:
    """Return the trace ids of an answer, and the seconds that it took."""
    began = time.perf_counter()
    traces = answer(question, rings, archive).traces
    return [trace.trace_id for trace in traces], time.perf_counter() - began


def _children_seconds() -> float:
    """Return the CPU seconds of all processes that we started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _command(found: Found, rings: Path, state: Path, session: str) -> None:
    """Run `inferdeck trace` and note how long it took.

    Raises:
        CannotRun: If it does not run.
    """
    ours = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")}
    began, cpu = time.perf_counter(), _children_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "inferdeck", "trace", session, "--json"],
        cwd=state,
        env={**ours, "INFERDECK_RING_DIR": str(rings), "INFERDECK_STATE_DIR": str(state)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in (0, 1):
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise CannotRun(f"`inferdeck trace` ended with {done.returncode}: {lines[-1]}", "run `inferdeck doctor`")
    found.commands.append(seconds)
    found.command_cpu.append(_children_seconds() - cpu)
    found.wrong += [trace["session_id"] for trace in json.loads(done.stdout)["traces"]] != (
        [session] * REQUESTS_PER_SESSION
    )
