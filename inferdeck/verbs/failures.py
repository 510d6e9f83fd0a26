"""`demo`, `drill`."""

from __future__ import annotations

from pathlib import Path

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["demo", "drill"]


@click.command(short_help="Cause a real failure; see it alerted, named and traced.")
@click.option("--seed", default=1, show_default=True, help="Draws sessions, gaps and reviews.")
@reports
def demo(*, seed: int, quiet: bool) -> Outcome:
    r"""Cause a real failure and see it alerted, named and traced, in under three minutes.

    Starts a stack of its own on free ports, sends real reviews, blocks the service's event loop for real, waits until
    the shipped rule fires in Prometheus and reaches Alertmanager, shows what the triage says that the alert started,
    and the waterfall of a slow session. Leaves nothing running.

    Exit 0 when the named cause is the caused one, else 1.

    \b
    Example:
      inferdeck demo
    """
    from inferdeck.demo import run_demo

    return run_demo(seed=seed, quiet=quiet)


@click.command(short_help="Cause failures for real and score their diagnosis.")
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option("--all", "every", is_flag=True, help="All failures of tests/failures.")
@click.option("--program", type=click.Path(path_type=Path), help="A program from anywhere; see below.")
@click.option("--expect", metavar="SLUG", help="What triage shall name for --program.")
@click.option("--runs", default=1, show_default=True, type=click.IntRange(1, 100), help="Runs of each failure.")
@click.option("--twin", is_flag=True, help="Run the healthy twins instead; they must raise nothing.")
@click.option("--mixed", is_flag=True, help="Run the healthy twins among the failures, in an order drawn by the seed.")
@click.option("--blind", is_flag=True, help="Judge only the triage that is told the time and no alert.")
@click.option(
    "--clean",
    type=click.FloatRange(1, 240),
    metavar="MINUTES",
    help="Healthy time: surge, restarts, idleness inside; 10 holds all.",
)
@click.option("--rescore", type=click.Path(path_type=Path), metavar="DIR", help="Score kept evidence again.")
@click.option("--seed", default=1, show_default=True, help="Draws traffic, strength, onset, order.")
@click.option("--packed", is_flag=True, help="Keep of each run one small file, enough for --rescore.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Fresh folder for the evidence.")
@reports
def drill(
    *,
    slugs: tuple[str, ...],
    every: bool,
    program: Path | None,
    expect: str | None,
    runs: int,
    twin: bool,
    mixed: bool,
    packed: bool,
    blind: bool,
    clean: float | None,
    rescore: Path | None,
    seed: int,
    out: Path | None,
    quiet: bool,
) -> Outcome:
    r"""Cause failures for real; score whether they are detected and named.

    Each run has a fresh stack on free ports: healthy traffic, then the cause, until the shipped rule fires. The seed
    draws traffic and its rate, when and how strongly the cause sets in, and with --all the order. Triage is asked
    twice, once told the alert and once told only the time. Evidence is kept in `runs_dir`.

    Exit 0 when every failure was detected and named (with --twin or --clean: nothing was), 1 on a miss. --rescore takes
    the evidence of any drill: what fired and was counted stays as recorded, triage is asked anew.

    \b
    Examples:
      inferdeck drill event_loop_blocked service_down
      inferdeck drill --all --mixed --runs 3 --json
      inferdeck drill --program ./mine.py --expect event_loop_blocked
      inferdeck drill --clean 3
      inferdeck drill --rescore .inferdeck/drills/20260101T000000

    \b
    A program is a Python file with one or both of
      def wrap(app, armed):   in the service process; returns an ASGI app; armed() tells
                              whether the failure is on (costs next to nothing)
      def cause(stack):       in the drill's process; a context manager, entering causes,
                              leaving ends. stack.service_url, .admin_url, .exporter_url,
                              .service_pids, .worker_pids, .exporter_pids, .state_dir, .ring_dir,
                              .base_rate, .kill_service(signal), .kill_exporter(signal),
                              .restart_service(), .restart_exporter(), .restart_prometheus(),
                              .set_rate(rps), .scrape_cluster(host:port)
    and SLUG = "what it causes" (--expect wins); WORKERS = 2 asks for that many workers of the
    service; SIMULATED = True says that part is played, and scores its runs apart. A file with
    neither is run as a script while the failure lasts, with INFERDECK_SERVICE_URL,
    INFERDECK_SERVICE_PID, INFERDECK_STATE_DIR in its environment; SIGTERM ends it. twin_wrap and
    twin_cause are the healthy twin. cannot_cause() may return why this machine cannot cause it;
    then it is left out and said. SERVICE_ENV and EXPORTER_ENV name further variables of the two,
    with {folder} for the run's folder; prepare(folder) makes what they name before the stack
    starts, and usual(stack) is a context manager around all of the run, healthy time included.

    \b
    What looks like trouble and is none (tests/failures/silence) runs by name, and inside --clean:
      inferdeck drill traffic_surge deploy_restart idle_service first_minutes prometheus_restart
    """
    from inferdeck.drill.command import DrillRequest
    from inferdeck.drill.entry import run_drill

    request = DrillRequest(slugs, every, program, expect, runs, twin, blind, seed, out, mixed, packed)
    return run_drill(request, clean_minutes=clean, rescore=rescore, quiet=quiet)
