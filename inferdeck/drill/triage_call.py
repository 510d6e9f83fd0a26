"""Asks the triage engine as a person would: with the alert's name, or with the time alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["ask"]


def ask(
    prometheus_url: str, ring_dir: Path, at: float, alert: str | None, clock: Callable[[], float]
) -> dict[str, Any]:
    """Run triage over a Prometheus and a folder of rows.

    It gets neither the program's name nor a path that holds a slug.

    Args:
        prometheus_url: Base URL.
        ring_dir: Folder of the rows, or of their copies.
        at: Time to look at, in seconds.
        alert: The alert's name; None is the blind question.
        clock: Wall clock; a rescore gives the recorded time.
    """
    from runbooks.engine import triage
    from runbooks.sources import Sources

    return triage(Sources.open(ring_dir, prometheus_url), alert=alert, at=at, clock=clock)
