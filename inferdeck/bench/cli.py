"""The benches: what observing costs, how fast the service starts and answers, how fast a request is found."""

from __future__ import annotations

from pathlib import Path

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["bench"]


@click.group()
def bench() -> None:
    """Measure what observing costs, how fast the service starts and answers, and how fast a request is found.

    \b
    Examples:
      inferdeck bench overhead --rounds 10 --plot overhead.svg
      inferdeck --json bench start
      inferdeck bench trace
    """  # noqa: D301  # click looks for the character, not for two letters


@bench.command()
@click.option("--rounds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Each measures all.")
@click.option("--seconds", type=click.IntRange(1, 60), default=1, show_default=True, help="Length of a window.")
@click.option("--variants", default="", metavar="A,B", help="Measure these beside bare; all by default.")
@click.option("--seed", type=int, default=1, show_default=True, help="Draws the order of the windows.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the result into this PNG or SVG.")
@reports
def overhead(*, rounds: int, seconds: int, variants: str, seed: int, plot: Path | None, quiet: bool) -> Outcome:
    """Compare the same no-op handler bare, with us, and with the usual packages.

    CPU time of the server per request, from the scheduler's nanoseconds, in interleaved windows of load. After each
    window it is proven that nothing was switched off: rows, stages, attributes, spans and counters against the
    requests. Exit 1 when a proof fails, or when ours at 1% costs more than a sixth of the strongest peer.

    Takes about 4 minutes and needs two quiet cores, wrk (fetched when apt-get can) and the extra `bench`.

    \b
    Examples:
      inferdeck bench overhead
      inferdeck bench overhead --rounds 3 --variants inferdeck_1pct,strongest
      inferdeck --json bench overhead --plot overhead.svg > overhead.json
    """  # noqa: D301  # click looks for the character, not for two letters
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


@bench.command()
@click.option("--runs", type=click.IntRange(1, 100), default=5, show_default=True, help="Starts to measure.")
@reports
def start(*, runs: int, quiet: bool) -> Outcome:
    """Time the real service from nothing to ready, and its imports alone. Exit 1 when it takes 2 s or more.

    \b
    Examples:
      inferdeck bench start
      inferdeck --json bench start --runs 10
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.start import draw_start, run_start
    from inferdeck.settings import load_settings
    from inferdeck.terminal import progress_bar

    with progress_bar("bench start", quiet=quiet) as progress:
        payload = run_start(load_settings().model_path, runs, progress)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_start(payload, console))


@bench.command()
@click.option("--rounds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Each measures all.")
@click.option("--seconds", type=click.IntRange(1, 60), default=3, show_default=True, help="Length of a window.")
@reports
def serve(*, rounds: int, seconds: int, quiet: bool) -> Outcome:
    """Load the real service, with its recorder on and off in turn, and with 1 ms of work in front as well.

    Exit 1 when it answers less than 0.90 of the requests a second that it answers without the recorder (0.98 with the
    work), or answers anything but a judgement; 100 clients at once are tried as well. A second service without the
    recorder shows the noise. Where Triton's environment is here, the service through Triton is held beside a bare
    FastAPI + tritonclient app (at least 0.85). Takes about 3 minutes.

    \b
    Examples:
      inferdeck bench serve
      inferdeck --json bench serve --rounds 10
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.serve import run_serve
    from inferdeck.bench.serve_result import draw_serve
    from inferdeck.settings import load_settings
    from inferdeck.terminal import progress_bar

    with progress_bar("bench serve", quiet=quiet) as progress:
        payload = run_serve(load_settings().model_path, rounds, float(seconds), progress)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_serve(payload, console))


@bench.command()
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True, help="Each goes through all.")
@click.option("--seconds", type=click.IntRange(1, 60), default=2, show_default=True, help="Length of a window.")
@click.option("--write", type=click.Path(path_type=Path, dir_okay=False), help="Write knee_rps into this profile.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the result into this PNG or SVG.")
@reports
def knee(*, rounds: int, seconds: int, write: Path | None, plot: Path | None, quiet: bool) -> Outcome:
    """Find the load beyond which the service's times grow faster than its answers: the limit's setting follows.

    Takes about a minute and needs two quiet cores and wrk (fetched when apt-get can).

    \b
    Examples:
      inferdeck bench knee
      inferdeck bench knee --write service/config/prod.yaml --plot knee.svg
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.knee import draw_knee, plot_knee, run_knee, write_limit
    from inferdeck.settings import load_settings
    from inferdeck.terminal import progress_bar

    if plot is not None:
        from inferdeck.bench.plot import need_matplotlib

        need_matplotlib(plot)
    with progress_bar("bench knee", quiet=quiet) as progress:
        payload = run_knee(load_settings().model_path, rounds, float(seconds), progress)
    if write is not None:
        write_limit(write, payload["knee_rps"])
    if plot is not None:
        plot_knee(payload, plot)
    return Outcome(payload, 0, lambda console: draw_knee(payload, console))


@bench.command()
@click.option("--seconds", type=click.IntRange(2, 3600), default=20, show_default=True, help="For each number.")
@click.option("--users", "numbers", default="10,50,100", show_default=True, metavar="A,B", help="Numbers of users.")
@reports
def users(*, seconds: int, numbers: str, quiet: bool) -> Outcome:
    """Let 10, 50 and 100 users send reviews to the real service, with pauses as people make, by locust.

    Exit 1 when a request fails, the P99 is above 300 ms, or the service's memory grows by more than 32 MiB.

    \b
    Examples:
      inferdeck bench users
      inferdeck --json bench users --users 100 --seconds 600
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.users import draw_users, run_users
    from inferdeck.errors import CannotRun
    from inferdeck.settings import load_settings
    from inferdeck.terminal import progress_bar

    try:
        counts = [int(number) for number in numbers.split(",")]
    except ValueError:
        counts = []
    if not counts or not all(1 <= count <= 10_000 for count in counts):
        raise CannotRun(f"--users {numbers!r} is no list of numbers from 1 to 10000", "such as --users 10,50,100")
    with progress_bar("bench users", quiet=quiet) as progress:
        payload = run_users(load_settings().model_path, float(seconds), progress, counts)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_users(payload, console))


@bench.command()
@click.option("--rounds", type=click.IntRange(2, 1000), default=20, show_default=True, help="Of 200 verdicts each.")
@reports
def postprocess(*, rounds: int, quiet: bool) -> Outcome:
    """Time a verdict, from logits to label and confidence, in process and over the Unix socket of a second app.

    \b
    Examples:
      inferdeck bench postprocess
      inferdeck --json bench postprocess --rounds 50
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.postprocess import draw_postprocess, run_postprocess
    from inferdeck.terminal import progress_bar

    with progress_bar("bench postprocess", quiet=quiet) as progress:
        payload = run_postprocess(rounds, progress)
    return Outcome(payload, 0, lambda console: draw_postprocess(payload, console))


@bench.command()
@click.option(
    "--records", type=click.IntRange(1000, 10_000_000), default=1_000_000, show_default=True, help="Requests to write."
)
@click.option("--look-ups", type=click.IntRange(1, 10_000), default=40, show_default=True, help="Of each kind of id.")
@click.option(
    "--commands", type=click.IntRange(0, 100), default=7, show_default=True, help="Runs of `inferdeck trace`."
)
@click.option(
    "--jaeger-traces",
    type=click.IntRange(0, 1_000_000),
    default=100_000,
    show_default=True,
    help="Traces to fill a Jaeger with, where one is here; 0 for none.",
)
@reports
def trace(*, records: int, look_ups: int, commands: int, jaeger_traces: int, quiet: bool) -> Outcome:
    """Time how long a session or a trace takes to be found among a million requests.

    The real recorder writes them and the real archiver seals them, in temporary folders: 70 MB of memory and 90 MB of
    disk. Then ids that are there, that are not, and the oldest are looked up in rings and archive together, each from
    nothing; and `inferdeck trace` is run as a command. Exit 1 when a median is above 50 ms, the command takes a second
    or more, or an answer is wrong. Where Jaeger is here, one is filled and asked as well (700 MB of memory; a second or
    more is a miss). Takes about two minutes.

    \b
    Examples:
      inferdeck bench trace
      inferdeck bench trace --records 100000 --commands 3
      inferdeck --json bench trace > trace.json
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.look_ups import draw_look_ups, run_look_ups
    from inferdeck.terminal import progress_bar

    with progress_bar("bench trace", quiet=quiet) as progress:
        payload = run_look_ups(records, look_ups, commands, progress, jaeger_traces=jaeger_traces)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_look_ups(payload, console))


@bench.command()
@click.option("--rounds", type=click.IntRange(3, 1000), default=9, show_default=True, help="Checks of each kind.")
@click.option("--peers", default="", metavar="A,B", help="Measure these, 'none' for none; all by default.")
@click.option(
    "--install-peers", is_flag=True, help="Install those that are missing, each into an environment of its own."
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/drift-peers"),
    show_default=True,
    help="Holds the peers' environments.",
)
@reports
def drift(*, rounds: int, peers: str, install_peers: bool, folder: Path, quiet: bool) -> Outcome:
    """Time a check for drift against a reference of 10,000: ours, scipy's, and the packages that people use.

    Peers run in environments of their own (a few hundred megabytes each), beside scipy, so that ratios come from one
    process. Exit 1 when our statistic is not scipy's, or a check is less than 15 times faster than scipy's at a window
    of 1,000, or 50 times at 10,000.

    \b
    Examples:
      inferdeck bench drift
      inferdeck bench drift --install-peers
      inferdeck --json bench drift --peers frouros > drift.json
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.drift import draw_drift, run_drift
    from inferdeck.bench.drift_peers import PEERS
    from inferdeck.terminal import progress_bar

    named = tuple(name.strip() for name in peers.split(",") if name.strip()) or tuple(PEERS)
    chosen = () if named == ("none",) else named
    with progress_bar("bench drift", quiet=quiet) as progress:
        payload = run_drift(folder.absolute(), rounds, chosen, install=install_peers, progress=progress)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_drift(payload, console))


@bench.command()
@click.option("--rounds", type=click.IntRange(3, 1000), default=15, show_default=True, help="Of each size.")
@reports
def images(*, rounds: int, quiet: bool) -> Outcome:
    """Time the variance of a photo's Laplacian beside cv2.Laplacian(image, CV_64F).var(), on one thread.

    And what judging a whole photo costs, from its bytes on. Exit 1 when the variance is not equal, or less than 4 times
    faster at any size. Takes about 20 seconds and needs the extra `images`.

    \b
    Examples:
      inferdeck bench images
      inferdeck --json bench images > images.json
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.images import draw_images, run_images
    from inferdeck.terminal import progress_bar

    with progress_bar("bench images", quiet=quiet) as progress:
        payload = run_images(rounds, progress)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_images(payload, console))


@bench.command()
@click.option("--messages", type=click.IntRange(1000, 1_000_000), default=30_000, show_default=True, help="Of a round.")
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True, help="Each measures all.")
@click.option("--kafka/--no-kafka", default=True, help="A real broker as well, where Java and Maven are here.")
@reports
def stream(*, messages: int, rounds: int, kafka: bool, quiet: bool) -> Outcome:
    """Count messages a second per core: validated, cleaned, masked, summed up in windows, state on disk.

    Beside the same work without an engine, and Quix Streams where it is installed. Exit 1 when the stream does less
    than 5,000 messages a second per core, from files or from Kafka. Takes about a minute.

    \b
    Examples:
      inferdeck bench stream
      inferdeck bench stream --no-kafka --rounds 1
      inferdeck --json bench stream > stream.json
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.stream import draw_stream, run_stream
    from inferdeck.terminal import progress_bar

    with progress_bar("bench stream", quiet=quiet) as progress:
        payload = run_stream(messages, rounds, progress, kafka=kafka)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_stream(payload, console))


@bench.command()
@click.option("--records", type=click.IntRange(1000, 1_000_000), default=1_000_000, show_default=True, help="Rows.")
@reports
def investigate(*, records: int, quiet: bool) -> Outcome:
    """Time `inferdeck investigate` over a window of so many rows, most of them archived, and its peak of memory.

    Rows are written by the real recorder and sealed by the real archiver, with one client release whose confidence
    falls at half time; the command runs as a process of its own. Exit 1 when it takes 60 s or 2 GB or more, misses a
    row, or names another slice. Takes about a minute.

    \b
    Examples:
      inferdeck bench investigate
      inferdeck bench investigate --records 100000
      inferdeck --json bench investigate > investigate.json
    """  # noqa: D301  # click looks for the character, not for two letters
    from inferdeck.bench.investigate import draw_investigate, run_investigate
    from inferdeck.terminal import progress_bar

    with progress_bar("bench investigate", quiet=quiet) as progress:
        payload = run_investigate(records, progress)
    return Outcome(payload, 0 if payload["gate"]["passed"] else 1, lambda console: draw_investigate(payload, console))
