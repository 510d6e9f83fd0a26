"""What looks like trouble and is none: its programs, and when each has its turn in a clean time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inferdeck.drill.program import Program, failures_folder, known_programs, read_program

__all__ = ["SURGE", "Act", "read_silence_program", "silence_folder", "silence_programs", "timetable"]

SURGE = "traffic_surge"
# In this order: those before the surge, the surge, those after it, each where there is room. Prometheus last: what it
# cannot answer in its own absence must not hide what the others do.
_ORDER = ("first_minutes", "deploy_restart", "idle_service", "prometheus_restart")
# Less is no test: the shipped rules look back a minute, and wait 10 to 60 s more.
LEAST_SECONDS = 60.0
# Of the clean time: a turn of one of the four, and the rest after it, in which the rules forget it.
_TURN, _REST = 0.12, 0.04


@dataclass(frozen=True)
class Act:
    """One program's turn.

    Attributes:
        program: What is done; it has a `cause` alone.
        begin: Seconds after the clean time's begin.
        end: When it is left, likewise.
    """

    program: Program
    begin: float
    end: float


def silence_folder() -> Path:
    """Return the folder of the programs after which nothing may be alerted or named.

    Raises:
        CannotRun: If this is no checkout: tests are never shipped.
    """
    return failures_folder() / "silence"


def read_silence_program(path: Path) -> Program:
    """Read a program after which nothing may be alerted or named.

    Raises:
        CannotRun: If it cannot be read.
    """
    return replace(read_program(path), healthy=True)


def silence_programs(folder: Path | None = None) -> list[Program]:
    """Return all programs of the folder, the checkout's by default."""
    where = folder or silence_folder()
    return [read_silence_program(where / f"{name}.py") for name in known_programs(where)]


def timetable(seconds: float, programs: Sequence[Program]) -> list[Act]:
    """Return who has a turn when: the surge for a quarter of the time after its first third, the others around it.

    Args:
        seconds: The clean time.
        programs: Those that want a turn; what is unknown to the order comes after what is known.

    Returns:
        Turns that do not overlap, by begin; programs for which there is no room have none.
    """
    surge = next((one for one in programs if one.slug == SURGE), None)
    surge_from = seconds / 3
    surge_to = surge_from + seconds / 4 if surge else surge_from
    acts = [Act(surge, surge_from, surge_to)] if surge else []
    length, rest = max(_TURN * seconds, LEAST_SECONDS), _REST * seconds
    clock = 0.0
    for program in sorted((one for one in programs if one.slug != SURGE), key=_place):
        # only the start of the time is a start
        begin = 0.0 if program.at_start else max(clock, rest)
        if surge and begin < surge_to and begin + length > surge_from:
            begin = surge_to + rest
        if (program.at_start and begin > 0.0) or begin + length > seconds:
            continue
        acts.append(Act(program, begin, begin + length))
        clock = begin + length + rest
    return sorted(acts, key=lambda act: act.begin)


def _place(program: Program) -> tuple[int, str]:
    known = _ORDER.index(program.slug) if program.slug in _ORDER else len(_ORDER)
    return (-1 if program.at_start else known, program.slug)
