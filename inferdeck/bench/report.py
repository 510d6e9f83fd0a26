"""Draws the overhead result on a terminal: one row per variant, then what a reader must know about it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from inferdeck.bench.variants import VARIANTS

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["draw_overhead", "lines_below"]


def draw_overhead(result: dict[str, Any], console: Console) -> None:
    """Draw *result*, in the shape of `schemas/bench_overhead.schema.json`.

    Args:
        result: What `run_overhead` returned.
        console: Where to draw.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("variant", no_wrap=True)
    for title in ("added us", "quartiles", "rps ratio", "exporter", "traces", "windows"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, figures in result["variants"].items():
        low, high = figures["added_us_quartiles"]
        windows = figures["windows"]
        share = figures.get("spans_received_share")
        table.add_row(
            VARIANTS[name].title,
            f"{figures['added_us']:.1f}",
            f"{low:.0f} .. {high:.0f}",
            f"{figures['rps_ratio']:.2f}",
            f"{figures['exporter_us']:.1f}" if "exporter_us" in figures else "",
            "" if share is None else f"{share:.1%}",
            f"{windows['kept']}/{windows['kept'] + windows['dropped']}" + ("*" if figures["noisy"] else ""),
        )
    console.print(table)
    for line in lines_below(result):
        console.print(line, markup=False)


def lines_below(result: dict[str, Any]) -> list[str]:
    """Return the sentences under the table: the scale, the noise, the proofs and the gate."""
    bare, gate, proofs = result["variants"]["bare"], result["gate"], result["proofs"]
    core = result.get("versions", {}).get("recorder core")
    lines = [f"recorder: {core} core."] if core else []
    lines += [
        f"bare: {bare['cpu_us']:.1f} us CPU per request, {bare['rps']:.0f} requests/s;",
        f"medians of {result['rounds']} rounds, each window against the bare windows before and after it.",
        "added us: CPU of the server per request; exporter: CPU us of our exporter's process, beside it;",
        "traces: share of requests whose spans reached the sink; windows: kept/measured.",
    ]
    if result["aa_us"] is not None:
        lines.append(f"bare against bare: {result['aa_us']:+.1f} us; differences of about that size mean nothing.")
    if result["noisy"]:
        lines.append(
            "NOISY (*): too few windows without foreign load, so that all were used; repeat on a quiet machine."
        )
    if proofs["failed"]:
        lines.append(f"{len(proofs['failed'])} of {proofs['checked']} proofs FAILED:")
        lines += [f"  {p['variant']}: {p['claim']}: {p['found']}" for p in proofs["failed"][:10]]
    else:
        lines.append(f"nothing was switched off: {proofs['checked']} proofs held.")
    if gate["passed"] is None:
        lines.append("gate: not measured, it needs inferdeck_1pct and a strongest peer that costs more than nothing.")
    else:
        word = "met" if gate["passed"] else "MISSED"
        most = gate["peer_ratio_max"]
        doubt = ", on a noisy machine" if result["noisy"] else ""
        ratio = f"{result['peer_ratio']:.3f}"
        lines.append(f"gate {word}{doubt}: ours costs {ratio} of the strongest peer (at most {most:.3f}).")
    return lines


def main() -> None:
    """Draw the result that comes in as JSON, as `make bench` does with the one that it keeps."""
    from rich.console import Console

    draw_overhead(json.load(sys.stdin), Console(width=100))


if __name__ == "__main__":
    main()
