"""`stream run`, `stream windows`."""

from __future__ import annotations

from pathlib import Path

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["stream"]


@click.group(short_help="Read user queries from Kafka or files into windows per minute.")
def stream() -> None:
    r"""Read user queries as a stream: validated, cleaned, masked, and summed up in windows of a minute.

    From a topic of Kafka, or from files (a folder of *.jsonl that grows) through the same code. What breaks the
    contract is a dead letter (`inferdeck deadletters`). The state survives a kill: each message counts once.

    \b
    Examples:
      inferdeck stream run --folder queries/
      inferdeck stream run --brokers 127.0.0.1:9092 --topic user_queries
      inferdeck stream windows
    """


@stream.command("run", short_help="Run the stream in the foreground.")
@click.option("--folder", type=click.Path(path_type=Path), help="Read this folder of *.jsonl, or one file.")
@click.option("--brokers", help="Read from Kafka: host:port, with commas between them.")
@click.option("--topic", help="Topic of the messages; user_queries by default.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the metrics; 9467 by default.")
def run_stream(folder: Path | None, brokers: str | None, topic: str | None, port: int | None) -> int:
    r"""Run the stream in the foreground until Ctrl-C or TERM; metrics, windows and health on 127.0.0.1:9467.

    Every setting is a variable INFERDECK_STREAM_<NAME>: docs/stream.md lists them.

    \b
    Examples:
      inferdeck stream run --folder queries/
      inferdeck stream run --brokers 127.0.0.1:9092
      INFERDECK_STREAM_PARTITIONS=0,1 inferdeck stream run --brokers 127.0.0.1:9092 --port 0
    """
    import signal

    from service.stream.app import main

    # the stream sets handlers of its own; until then TERM shall simply end it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    given = {"folder": folder, "brokers": brokers, "topic": topic, "port": port}
    return main({key: value for key, value in given.items() if value is not None})


@stream.command("windows")
@click.option("--last", type=click.IntRange(1, 1440), default=10, show_default=True, help="So many of the newest.")
@click.option("--url", help="Base URL of the stream; that of the stack's port by default.")
@reports
def windows(*, last: int, url: str | None, quiet: bool) -> Outcome:
    r"""Show the newest windows of a running stream: how many questions, how long, of which quality.

    \b
    Examples:
      inferdeck stream windows
      inferdeck stream windows --last 60 --json
      inferdeck stream windows --url http://127.0.0.1:9467
    """
    from inferdeck.settings import load_settings
    from inferdeck.stream_windows import show_windows

    del quiet
    return show_windows(load_settings(), last, url)
