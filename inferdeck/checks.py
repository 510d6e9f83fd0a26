"""The shape that `doctor` and `check` share: named checks, each with a state, a detail and a mend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from inferdeck.result import Outcome

__all__ = ["Check", "guarded", "report"]

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "absent": "dim"}


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        name: What was looked at.
        state: ok, warn, fail or absent (what it needs is not on this machine).
        detail: What was seen.
        mend: What to do about it; empty when all is well.
    """

    name: str
    state: str
    detail: str
    mend: str = ""


def guarded(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """Return what a check finds; one that breaks is itself a finding and does not end the others.

    Args:
        name: What is looked at.
        look: Does the looking.
    """
    try:
        return list(look())
    except Exception as error:  # noqa: BLE001  # a broken check must not hide what the others see
        return [
            Check(
                name,
                "fail",
                f"the check itself failed: {type(error).__name__}: {error}",
                "INFERDECK_DEBUG=1 shows more",
            )
        ]


def report(checks: Sequence[Check]) -> Outcome:
    """Return the outcome of a list of checks: exit code 1 when one failed."""
    payload: dict[str, Any] = {"checks": [asdict(check) for check in checks]}
    failed = any(check.state == "fail" for check in checks)
    return Outcome(payload, int(failed), lambda console: _show(console, checks))


def _show(console: Console, checks: Sequence[Check]) -> None:
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        line = Text(f"{check.state:6}", COLOURS.get(check.state, ""))
        line.append(f" {check.name.ljust(width)}  {check.detail}", "default")
        if check.mend and check.state != "ok":
            line.append(f"; {check.mend}", "bold")
        console.print(line)
