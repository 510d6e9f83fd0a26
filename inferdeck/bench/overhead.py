"""`inferdeck bench overhead`: what observing costs, per request, beside what people run today."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferdeck.bench.machine import describe, pinned_to, two_cores, versions
from inferdeck.bench.overhead_result import Run, shape
from inferdeck.bench.proofs import Proof, prove
from inferdeck.bench.rig import Measured, Rig, open_rig
from inferdeck.bench.variants import BARE, VARIANTS
from inferdeck.bench.wrk_install import ensure_wrk
from inferdeck.errors import CannotRun

__all__ = ["Progress", "Settings", "measure_overhead", "plan", "run_overhead"]

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes:
        rounds: Each round measures every variant once, in random order.
        seconds: Length of a window.
        variants: What to measure beside bare; all by default.
        seed: Draws the orders.
    """

    rounds: int = 10
    seconds: float = 1.0
    variants: tuple[str, ...] = tuple(VARIANTS)
    seed: int = 1

    def names(self) -> list[str]:
        """Return the variants to run, bare among them, in the order of the table.

        Raises:
            CannotRun: If one is unknown, or there is nothing beside bare.
        """
        for name in self.variants:
            if name not in VARIANTS:
                raise CannotRun(f"unknown variant {name!r}", f"there are {', '.join(VARIANTS)}")
        names = [name for name in VARIANTS if name == BARE or name in self.variants]
        if len(names) < 2:
            raise CannotRun("nothing to compare bare with", "name at least one other variant")
        return names


def plan(names: Sequence[str], round_number: int, seed: int) -> list[str]:
    """Return one round's windows in order: bare, a, bare, b, bare ..., the others in random order."""
    others = [name for name in names if name != BARE]
    random.Random(f"{seed}:{round_number}").shuffle(others)
    order = [BARE]
    for name in others:
        order += [name, BARE]
    return order


def measure_overhead(rig: Rig, settings: Settings, progress: Progress) -> Run:
    """Measure all rounds on a rig that is up.

    Args:
        rig: The processes.
        settings: How much.
        progress: Told what is measured and the share done.
    """
    names = settings.names()
    total = len(names) + settings.rounds * (2 * len(names) - 1)
    done = 0
    for name in names:
        progress(f"warming up {name}", done / total)
        rig.measure(name, 1.0)
        done += 1
    rounds: list[list[Measured]] = []
    proofs: list[Proof] = []
    for number in range(settings.rounds):
        measured = []
        for name in plan(names, number, settings.seed):
            progress(f"round {number + 1} of {settings.rounds}: {name}", done / total)
            measured.append(found := rig.measure(name, settings.seconds))
            proofs += prove(VARIANTS[name], found.load, found.evidence)
            done += 1
        rounds.append(measured)
    return Run(names, rounds, proofs, {name: rig.resident_bytes(name) for name in names})


def run_overhead(settings: Settings, progress: Progress) -> dict[str, Any]:
    """Run the bench and return its result in the shape of `schemas/bench_overhead.schema.json`.

    Args:
        settings: How much.
        progress: Told what is measured and the share done.

    Raises:
        CannotRun: If wrk, a package of the extra `bench` or a second core is missing, or a process does not start.
    """
    names = settings.names()
    _need_peers(names)
    wrk = ensure_wrk()
    server_core, other_core = two_cores()
    # rows live on tmpfs in production, so they do here
    shm = Path("/dev/shm")  # noqa: S108  # the folder below it is made 0700 by tempfile
    parent = shm if shm.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="inferdeck-bench-", dir=parent) as scratch,
        pinned_to(other_core),
        open_rig(names, wrk, Path(scratch), server_core) as rig,
    ):
        run = measure_overhead(rig, settings, progress)
    return {**shape(run), "seconds": settings.seconds, "machine": describe(), "versions": versions()}


def _need_peers(names: Sequence[str]) -> None:
    if not any(VARIANTS[name].counter for name in names):
        return
    try:
        import inferdeck.bench.peers  # noqa: F401  # tells whether the peers' packages are here
    except ImportError as error:
        raise CannotRun(
            f"the peers are not installed ({error.name})",
            "pip install 'inferdeck[bench]', or leave them out with --variants",
        ) from error
