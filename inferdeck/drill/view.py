"""Draws a drill's result on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["show_drill"]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def show_drill(console: Console, payload: dict[str, Any]) -> None:
    """Print the runs, the clean time and the scores.

    Args:
        console: Where to.
        payload: In the shape of `drill`.
    """
    if payload["faults"]:
        table = Table(box=None, pad_edge=False)
        for heading in ("failure", "run", "alert", "detected", "named", "verdict", "told only the time"):
            table.add_column(heading)
        for fault in payload["faults"]:
            good = "green" if fault["verdict"] == fault["slug"] else "red"
            blind = "green" if fault["blind"]["verdict"] == fault["slug"] else "red"
            table.add_row(
                fault["slug"],
                str(fault["run"]),
                fault["alert"] or "[red]none[/]",
                _seconds(fault["detect_s"]),
                _seconds(fault["named_s"]),
                f"[{good}]{fault['verdict'] or 'abstained'}[/] {fault['confidence']:.2f}",
                f"[{blind}]{fault['blind']['verdict'] or 'abstained'}[/]",
            )
        console.print(table)
        for fault in payload["faults"]:
            if early := fault.get("fired_before"):
                console.print(f"[red]{fault['slug']}, run {fault['run']}: {', '.join(early)} fired before the cause[/]")
        keys = ("top1", "top1_blind", "avg3", "layer_top1", "abstain_rate", "wrong_and_confident")
        console.print("   ".join(f"{key} {_share(payload[key])}" for key in keys))
        _show_beside(console, payload)
    for what, key in (("healthy twin of ", "twins"), ("", "silences")):
        for one in payload.get(key, ()):
            heard = ", ".join(one["alerts"] + one["verdicts"]) or "the watchdog was never seen firing"
            said = "[green]silent[/]" if one["silent"] else f"[red]{heard}[/]"
            console.print(f"{what}{one['slug']}, run {one['run']}: {said}")
    for one in payload.get("skipped", ()):
        console.print(f"{one['slug']}: left out, {one['reason']}", markup=False)
    if payload["clean"]:
        _show_clean(console, payload["clean"])
    console.print(f"evidence: {payload['runs_dir']}", markup=False)


def _show_beside(console: Console, payload: dict[str, Any]) -> None:
    """Print how sure the scores are, what simpler methods reach on the same data, and which layers were confused."""
    for key, borders in payload.get("intervals", {}).items():
        if borders is not None:
            console.print(f"{key} lies between {borders[0]:.2f} and {borders[1]:.2f} with 95% certainty")
    known = {name: share for name, share in payload["baselines"].items() if share is not None}
    if known:
        console.print("beside it: " + ", ".join(f"{name} {share:.2f}" for name, share in known.items()))
    for layer, row in payload.get("layers", {}).items():
        if wrong := ", ".join(f"{named} {count}" for named, count in row.items() if named != layer):
            console.print(f"layer {layer} was taken for: {wrong}", markup=False)


def _show_clean(console: Console, clean: dict[str, Any]) -> None:
    surge = f"surge {clean['surge_ratio']:g} times" if clean["surge_ratio"] is not None else "no surge"
    console.print(
        f"clean: {clean['minutes']:g} minutes, {clean['requests']} requests, {surge}, "
        f"{_known(clean['rules_loaded'])} rules, {_known(clean['failed_scrapes'])} failed scrapes, "
        f"{clean['false_alerts']} false alerts, {clean['false_verdicts']} false verdicts"
    )
    console.print(f"inside: {', '.join(act['slug'] for act in clean.get('acts', ())) or 'nothing'}")
    if clean.get("no_room_for"):
        console.print(f"no time for {', '.join(clean['no_room_for'])}: --clean 10 holds all")
    proof = clean["proof"]
    console.print(f"proof: {proof['slug']} {'named' if proof['named'] else '[red]not named[/]'}")
    for sentence in clean.get("not_clean", ()):
        console.print(f"not clean: {sentence}", style="bold red", markup=False)
