"""Draws the overhead result as a picture for the README, by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inferdeck.bench.variants import BARE, VARIANTS
from inferdeck.errors import CannotRun

__all__ = ["FORMATS", "need_matplotlib", "plot_overhead"]

FORMATS = (".png", ".svg")
OURS, PEER = "#1b7f5c", "#8a8f98"


def need_matplotlib(target: Path) -> None:
    """Check, before minutes of measuring, that *target* can be drawn.

    Raises:
        CannotRun: If the ending is not one of FORMATS, its folder is missing, or matplotlib is not installed.
    """
    if target.suffix not in FORMATS:
        raise CannotRun(f"cannot draw {target.name}", f"end the name in {' or '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise CannotRun(f"no folder {target.parent}", "create it first")
    try:
        import matplotlib  # noqa: F401, ICN001  # asked for its presence alone
    except ImportError as error:
        raise CannotRun("matplotlib is not installed", "pip install 'inferdeck[bench]'") from error


def plot_overhead(result: dict[str, Any], target: Path) -> None:
    """Write a bar per variant: added CPU microseconds per request with quartiles.

    Args:
        result: In the shape of `schemas/bench_overhead.schema.json`.
        target: PNG or SVG file.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = [name for name in reversed(list(result["variants"])) if not name.startswith(BARE)]
    figure = Figure(figsize=(8, 0.55 * len(names) + 1.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for at, name in enumerate(names):
        figures = result["variants"][name]
        added, (low, high) = figures["added_us"], figures["added_us_quartiles"]
        axes.barh(at, added, color=OURS if VARIANTS[name].ours else PEER, height=0.62)
        axes.plot([low, high], [at, at], color="black", linewidth=1)
        label = f"  {added:.0f} us, {figures['rps_ratio']:.2f} of bare's requests/s"
        axes.text(max(added, high), at, label, va="center", fontsize=8)
    axes.set_yticks(range(len(names)), [VARIANTS[name].title for name in names], fontsize=8)
    # room for the longest bar's label; the axis begins at 0, so that lengths compare as costs do
    axes.set_xlim(0, 1.6 * max(1.0, *(result["variants"][name]["added_us_quartiles"][1] for name in names)))
    bare = result["variants"][BARE]["cpu_us"]
    axes.set_xlabel(f"CPU microseconds added per request (bare: {bare:.0f} us); thin line: quartiles", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    # without a date and with fixed ids, the same result gives the same file
    with rc_context({"svg.hashsalt": "inferdeck"}):
        figure.savefig(target, dpi=150, metadata={"Date": None} if target.suffix == ".svg" else None)
