"""`drill`: runs failures one after the other, scores them, and shows the scores."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferdeck.drill.packing import pack_run
from inferdeck.drill.program import Program, failures_folder, known_programs, load_module, read_program
from inferdeck.drill.run import Errand, RunPlan, Tools, require_namable, run_failure
from inferdeck.drill.score import Fault, missed, scores
from inferdeck.drill.silence import read_silence_program, silence_folder
from inferdeck.drill.twin import run_silent
from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.stack.state import make_private_folder

__all__ = ["DrillRequest", "choose_programs", "drill", "fresh_runs_dir", "order", "run_folder"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class DrillRequest:
    """What is asked for.

    Attributes:
        slugs: Failures of the checkout, or its programs of silence.
        every: All failures of the checkout.
        program: A program from anywhere.
        expect: What triage shall name for it.
        runs: Runs of each failure.
        twin: Run the healthy twins instead of the failures.
        blind: Judge only the triage that is told the time alone.
        seed: Draws traffic, how strong each cause is, and with `every` the order.
        mixed: Run the healthy twins among the failures.
        packed: Keep of each run one small file with what scoring it again needs.
        out: Folder for the evidence; below the state folder by default.
    """

    slugs: tuple[str, ...] = ()
    every: bool = False
    program: Path | None = None
    expect: str | None = None
    runs: int = 1
    twin: bool = False
    blind: bool = False
    seed: int = 1
    out: Path | None = None
    mixed: bool = False
    packed: bool = False


def choose_programs(request: DrillRequest) -> list[Program]:
    """Return the programs to run, all read and checked before anything starts.

    Raises:
        CannotRun: If nothing is chosen, or a program cannot be read or names no failure.
    """
    programs = []
    if request.slugs or request.every:
        folder = failures_folder()
        known = known_programs(folder)
        healthy = known_programs(silence_folder())
        slugs = known if request.every else request.slugs
        if unknown := [slug for slug in slugs if slug not in {*known, *healthy}]:
            every = ", ".join(known + healthy)
            raise CannotRun(f"no program causes {', '.join(unknown)}", f"known: {every}")
        programs = [
            read_program(folder / f"{slug}.py")
            if slug in known
            else read_silence_program(silence_folder() / f"{slug}.py")
            for slug in slugs
        ]
    if request.program is not None:
        programs.append(read_program(request.program, request.expect))
    elif request.expect is not None:
        raise CannotRun("--expect goes with --program", "give --program FILE as well")
    if not programs:
        raise CannotRun(
            "nothing to drill", "name failures, or give --all, --program FILE, --clean MINUTES or --rescore DIR"
        )
    for program in programs:
        if not program.healthy:
            require_namable(program.slug)
    return programs


def fresh_runs_dir(out: Path | None, state_dir: Path, clock: Callable[[], float] = time.time) -> Path:
    """Return a fresh folder for the evidence of one drill.

    Args:
        out: The folder asked for; it must not hold anything.
        state_dir: State folder, below which it is made otherwise.
        clock: Wall clock.

    Raises:
        CannotRun: If *out* is not empty or cannot be made.
    """
    if out is not None:
        folder = out.expanduser().absolute()
        if folder.is_dir() and any(folder.iterdir()):
            raise CannotRun(f"{folder} is not empty", "give a fresh folder to --out")
        return make_private_folder(folder)
    base = state_dir / "drills" / time.strftime("%Y%m%dT%H%M%S", time.gmtime(clock()))
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return make_private_folder(folder)


def run_folder(runs_dir: Path, number: int) -> Path:
    """Return the fresh folder of one run, named by its number alone.

    Triage is given paths below it: a slug in its name would tell the answer. What was caused is in its
    `ground_truth.json`, which is written when triage has spoken.

    Args:
        runs_dir: The drill's folder.
        number: Which run of the drill, from 1.
    """
    return make_private_folder(runs_dir / f"{number:03d}")


def drill(
    request: DrillRequest, settings: StackSettings, tools: Tools, say: Say, *, plan: RunPlan | None = None
) -> tuple[dict[str, Any], int]:
    """Run what is asked for.

    Args:
        request: What is asked for.
        settings: Where the model is.
        tools: Programs of Prometheus.
        say: Gets one line for each step.
        plan: How each run goes.

    Returns:
        The payload in the shape of `drill`, and the exit code: 1 when anything was missed.

    Raises:
        CannotRun: If a run cannot be carried out.
    """
    programs, skipped = _possible(choose_programs(request), say)
    runs_dir = fresh_runs_dir(request.out, settings.state_path)
    errand = Errand(settings, tools, plan or RunPlan(seed=request.seed), say)
    faults: list[Fault] = []
    twins: list[dict[str, Any]] = []
    silences: list[dict[str, Any]] = []
    for run in range(1, request.runs + 1):
        for program, twin in order(programs, request, run):
            say(f"run {run} of {request.runs}: {'twin of ' if twin else ''}{program.slug}")
            number = len(faults) + len(twins) + len(silences) + 1
            folder = run_folder(runs_dir, number)
            if program.healthy:
                silences.append(run_silent(program, run, folder, errand))
            elif twin:
                twins.append(run_silent(program, run, folder, errand))
            else:
                faults.append(run_failure(program, run, folder, errand))
            if request.packed:
                pack_run(folder)
    noisy = any(not one["silent"] for one in twins + silences)
    missing = any(missed(fault, blind_only=request.blind) for fault in faults)
    apart = {"twins": twins, "silences": silences, "skipped": skipped}
    return summary(runs_dir, faults) | apart, int(noisy or missing)


def order(programs: Sequence[Program], request: DrillRequest, run: int) -> list[tuple[Program, bool]]:
    """Return what is run, each with whether as its twin; of all failures in an order that seed and run draw.

    Args:
        programs: What was chosen.
        request: What is asked for.
        run: Number of the run, from 1.
    """
    chosen = [(program, request.twin and not program.healthy) for program in programs]
    if request.mixed and not request.twin:
        chosen += [(program, True) for program in programs if program.hooks & {"twin_wrap", "twin_cause"}]
    if request.every or request.mixed:
        random.Random(request.seed + run).shuffle(chosen)
    return chosen


def _possible(programs: list[Program], say: Say) -> tuple[list[Program], list[dict[str, str]]]:
    """Return the programs that can be run on this machine, and the others with why not.

    Raises:
        CannotRun: If none can.
    """
    skipped = []
    for program in programs:
        if "cannot_cause" in program.hooks and (why := load_module(program.path).cannot_cause()):
            skipped.append({"slug": program.slug, "reason": str(why)})
            say(f"{program.slug}: left out, {why}")
    out = {one["slug"] for one in skipped}
    possible = [program for program in programs if program.slug not in out]
    if not possible:
        raise CannotRun(
            f"nothing can be caused here: {skipped[0]['slug']}: {skipped[0]['reason']}", "use another machine"
        )
    return possible, skipped


def summary(runs_dir: Path, faults: Sequence[Fault], clean: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return runs and scores in the shape of `drill`."""
    return {
        "runs_dir": str(runs_dir),
        "faults": [fault.to_json() for fault in faults],
        "clean": clean,
        "twins": [],
        "silences": [],
        "skipped": [],
        **scores(faults),
    }
