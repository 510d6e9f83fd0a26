"""A card that is played: the C library of tests/stub_nvml in the driver's place, and a file that says what it answers.

NVML's real binding reads it in the exporter, and in the service where that looks at its card. What the drill plays is
the card alone: what exporter, service, alerts and triage make of it is theirs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

GIB = 1 << 30
SIZE = 80 * GIB
MODEL = 10 * GIB
"""What the service's model holds on the card, batches included."""


@dataclass(frozen=True)
class Card:
    """What one card answers.

    Attributes:
        busy: Its utilisation in percent.
        held: Memory by process: pid, bytes, program.
        error: NVML's error for the whole card; 0 while it answers.
    """

    busy: int = 35
    held: tuple[tuple[int, int, str], ...] = ()
    error: int = 0

    def text(self) -> str:
        """Return it as a scenario of the stub."""
        lines = ["driver 580.65.06", "count 1"]
        if self.error:
            return "\n".join([*lines, f"0 !{self.error}", ""])
        used = min(SIZE, sum(each for _, each, _ in self.held))
        lines += ["0.name NVIDIA H100 80GB HBM3", f"0.utilization {self.busy} {self.busy // 2}"]
        lines += [f"0.memory {SIZE} {SIZE - used} {used}", "0.temperature 51", "0.power 310000", "0.power_limit 700000"]
        lines += ["0.clock.sm 1980", "0.clock.memory 2619", "0.throttle 0", "0.ecc.corrected 0", "0.ecc.uncorrected 0"]
        return "\n".join([*lines, *(f"0.process {pid} {each} {name}" for pid, each, name in self.held), ""])


def prepare(folder: Path, build: Callable[[Path], object] | None = None) -> None:
    """Build the library and lay the card's file down, before anything of the stack starts.

    Args:
        folder: The run's state folder.
        build: Builds the library into a folder.
    """
    library = folder / "nvml"
    library.mkdir(mode=0o700, exist_ok=True)
    (build or _build)(library)
    show(folder, Card())


def _build(folder: Path) -> object:
    from tests.stub_nvml import build_stub

    return build_stub(folder)


def cannot_cause() -> str | None:
    """Return why this machine cannot play a card, or None when it can."""
    import shutil

    return None if shutil.which("gcc") else "there is no gcc to build the library that plays a card"


def show(folder: Path, card: Card) -> None:
    """Let the card answer so from now on; whole, since it is read in the middle of a look.

    Args:
        folder: The run's state folder.
        card: What it answers.
    """
    fresh = folder / "card.fresh"
    fresh.write_text(card.text())
    fresh.replace(folder / "card")


def usual_card(stack: Any) -> Card:
    """Return the card as it is while all is well: the service's workers hold their model, and nobody else is there.

    Args:
        stack: The drill's handle on the stack.
    """
    pids = stack.worker_pids
    return Card(held=tuple((pid, MODEL // len(pids), "/usr/bin/python3.11") for pid in pids))


@contextmanager
def usual(stack: Any) -> Iterator[None]:
    """Put the service's workers onto the card for all of the run.

    Args:
        stack: The drill's handle on the stack.
    """
    until = time.monotonic() + 30.0
    while not stack.worker_pids and time.monotonic() < until:
        time.sleep(0.2)
    show(stack.state_dir, usual_card(stack))
    yield


@contextmanager
def becomes(stack: Any, change: Callable[[Card], Card]) -> Iterator[None]:
    """Change the card at once, and back on the way out.

    Args:
        stack: The drill's handle on the stack.
        change: Gets the usual card and returns the other.
    """
    usual = usual_card(stack)
    show(stack.state_dir, change(usual))
    try:
        yield
    finally:
        show(stack.state_dir, usual)


@contextmanager
def moves(stack: Any, change: Callable[[Card, float], Card], period_seconds: float = 1.0) -> Iterator[None]:
    """Change the card again and again, and back on the way out.

    Args:
        stack: The drill's handle on the stack.
        change: Gets the usual card and the seconds since the start, and returns what it is then.
        period_seconds: Pause between two changes.
    """
    usual, over, began = usual_card(stack), threading.Event(), time.monotonic()

    def run() -> None:
        while True:
            show(stack.state_dir, change(usual, time.monotonic() - began))
            if over.wait(period_seconds):
                return

    mover = threading.Thread(target=run, name="card", daemon=True)
    mover.start()
    try:
        yield
    finally:
        over.set()
        mover.join(timeout=5)
        show(stack.state_dir, usual)


def holding(card: Card, own_bytes: int) -> Card:
    """Return the card with so much memory held by the service's first worker.

    Args:
        card: The card.
        own_bytes: What that worker holds.
    """
    (pid, _, name), *others = card.held
    return replace(card, held=((pid, own_bytes, name), *others))
