"""Draws `status` on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from inferdeck.settings import STATE_VARIABLE

__all__ = ["show_status"]

COLOURS = {"up": "green", "unhealthy": "yellow", "dead": "red", "stopped": "dim", "absent": "dim"}


def show_status(console: Console, payload: dict[str, Any]) -> None:
    """Print the parts as a table, then the last words of the dead.

    Args:
        console: Where to.
        payload: As `inferdeck.stack.status.describe` returns it.
    """
    if not payload["parts"]:
        console.print(
            f"down: no stack was started from {payload['state_dir']}; start one with `inferdeck up`, "
            f"or set {STATE_VARIABLE} to the state folder of one that runs",
            markup=False,
            soft_wrap=True,
        )
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "health", "pid", "url", "scraped", "detail"):
        table.add_column(heading)
    for part in payload["parts"]:
        age = part["last_scrape_age_s"]
        table.add_row(
            part["name"],
            f"[{COLOURS[part['health']]}]{part['health']}[/]",
            str(part["pid"] or "-"),
            part["url"],
            "-" if age is None else f"{age:.0f} s ago",
            part["detail"],
        )
    console.print(f"{payload['state']}   state {payload['state_dir']}   rows {payload['ring_dir']}")
    if payload["note"]:
        console.print(payload["note"])
    console.print(table)
    for part in payload["parts"]:
        for line in part["log_tail"]:
            console.print(f"{part['name']}: {line}", markup=False, style="dim")
