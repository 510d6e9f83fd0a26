"""How strong a cause is, when it begins, and how much goes on beside it: drawn by the drill's seed.

A program says what may vary, as a constant that is read without running it; the numbers are those at its top:

    PAUSE_SECONDS = 0.2
    SHARE = 0.05
    DRAWN = {"PAUSE_SECONDS": (0.15, 0.4), "SHARE": (0.05, 0.1)}

Two whole numbers draw a whole number. The same seed draws the same in the drill and in the service's process. What
triage was tuned on some seeds for is scored on others.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from inferdeck.drill.run import RunPlan

__all__ = ["CONSTANT", "Ranges", "draw", "drawn_plan", "read_ranges", "with_numbers"]

CONSTANT: Final = "DRAWN"
# Of what the plan says: a tired morning and a busy one, and a cause that nobody can set a clock by.
RATE_SHARES: Final = (0.75, 1.25)
BASELINE_SHARES: Final = (1.0, 1.25)

Ranges = Mapping[str, tuple[float, float]]


def read_ranges(tree: ast.Module, name: str) -> Ranges:
    """Return what a program lets vary; nothing without the constant.

    Args:
        tree: The program.
        name: Its file's name, for messages.

    Raises:
        CannotRun: If the constant does not name numbers at the program's top, each with its least and its most.
    """
    told = next((value for target, value in _constants(tree) if target == CONSTANT), None)
    if told is None:
        return {}
    mend = f'write {CONSTANT} = {{"PAUSE_SECONDS": (0.1, 0.4)}}'
    try:
        ranges = ast.literal_eval(told)
    except ValueError as error:
        raise CannotRun(f"{CONSTANT} of {name} is no constant", mend) from error
    numbers = {target for target, value in _constants(tree) if _is_number(value)}
    if not isinstance(ranges, dict) or not all(_is_range(one) for one in ranges.values()):
        raise CannotRun(f"{CONSTANT} of {name} has no least and most for each number", mend)
    if unknown := sorted(map(str, ranges.keys() - numbers)):
        raise CannotRun(f"{CONSTANT} of {name} names no number at its top: {', '.join(unknown)}", mend)
    return ranges


def _constants(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    return [
        (target.id, node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) in {int, float}


def _is_range(told: object) -> bool:
    return (
        isinstance(told, tuple)
        and len(told) == 2
        and all(type(one) in {int, float} for one in told)
        and told[0] <= told[1]
    )


def draw(ranges: Ranges, seed: int, name: str) -> dict[str, float]:
    """Return a number for each name.

    Args:
        ranges: Least and most.
        seed: The run's.
        name: The program's: two programs of one run shall not both be weak or both be strong.
    """
    found: dict[str, float] = {}
    for one, (least, most) in sorted(ranges.items()):
        # Each by itself: a further range leaves the others as they were.
        source = random.Random(f"{seed}/{name}/{one}")
        whole = isinstance(least, int) and isinstance(most, int)
        found[one] = source.randint(int(least), int(most)) if whole else round(source.uniform(least, most), 4)
    return found


def with_numbers(tree: ast.Module, numbers: Mapping[str, float]) -> ast.Module:
    """Return a program with other numbers at its top; what is computed from them there follows.

    Args:
        tree: The program; it is changed.
        numbers: By name.
    """
    for node in tree.body:
        if isinstance(node, ast.Assign) and _is_number(node.value):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in numbers:
                    node.value = ast.copy_location(ast.Constant(numbers[target.id]), node.value)
    return tree


def drawn_plan(plan: RunPlan, seed: int, path: Path) -> RunPlan:
    """Return a plan with another rate of traffic and another healthy time before the cause.

    Args:
        plan: The drill's.
        seed: The run's.
        path: The program.
    """
    source = random.Random(f"{seed}/{path.stem}")
    rate = round(plan.rate * source.uniform(*RATE_SHARES), 1)
    return replace(plan, rate=rate, baseline_seconds=round(plan.baseline_seconds * source.uniform(*BASELINE_SHARES), 1))
