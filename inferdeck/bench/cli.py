"""`bench overhead`, `bench start`, `bench serve`."""

from __future__ import annotations

from pathlib import Path

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["bench"]


@click.group()
def bench() -> None:
    r"""Measure what observing costs, and how fast the service starts and answers.

    \b
    Examples:
      inferdeck bench overhead --rounds 10 --plot overhead.svg
      inferdeck --json bench start
    """


@bench.command()
@click.option("--rounds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Each measures all.")
@click.option("--seconds", type=click.IntRange(1, 60), default=1, show_default=True, help="Length of a window.")
@click.option("--variants", default="", metavar="A,B", help="Measure these beside bare; all by default.")
@click.option("--seed", type=int, default=1, show_default=True, help="Draws the order of the windows.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the result into this PNG or SVG.")
@reports
def overhead(*, rounds: int, seconds: int, variants: str, seed: int, plot: Path | None, quiet: bool) -> Outcome:
    r"""Compare the same no-op handler bare, with us, and with the usual packages.

    CPU time of the server per request, from the scheduler's nanoseconds, in interleaved windows of load. After each
    window it is proven that nothing was switched off: rows, stages, attributes, spans and counters against the
    requests. Exit 1 when a proof fails, or when ours at 1% costs more than a sixth of the strongest peer.

    Takes about 4 minutes and needs two quiet cores, wrk (fetched when apt-get can) and the extra `bench`.

    \b
    Examples:
      inferdeck bench overhead
      inferdeck bench overhead --rounds 3 --variants inferdeck_1pct,strongest
      inferdeck --json bench overhead --plot overhead.svg > overhead.json
    """
    from inferdeck.bench.overhead import Settings, run_overhead
    from inferdeck.bench.overhead_result import exit_code
    from inferdeck.bench.report import draw_overhead
    from inferdeck.bench.variants import VARIANTS
    from inferdeck.terminal import progress_bar

    if plot is not None:
        from inferdeck.bench.plot import need_matplotlib

        need_matplotlib(plot)
    chosen = tuple(name.strip() for name in variants.split(",") if name.strip()) or tuple(VARIANTS)
    settings = Settings(rounds=rounds, seconds=float(seconds), variants=chosen, seed=seed)
    with progress_bar("bench overhead", quiet=quiet) as progress:
        payload = run_overhead(settings, progress)
    if plot is not None:
        from inferdeck.bench.plot import plot_overhead

        plot_overhead(payload, plot)
    return Outcome(payload, exit_code(payload), lambda console: draw_overhead(payload, console))
