"""Terminal output: results to stdout, progress and logs to stderr, silent where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Say", "progress_bar", "sayer", "stderr_console", "stdout_console"]

Say = Callable[[str], None]


def stdout_console() -> Console:
    """Return the console that results are drawn on; plain text when stdout is no terminal."""
    console = Console(highlight=False, soft_wrap=True)
    # a pipe or a CI log has no width of its own: 100 columns keep bars and tables in one line
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=100, color_system=None)


def stderr_console() -> Console:
    """Return the console for progress and logs."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def sayer(*, quiet: bool) -> Say:
    """Return a function that prints one progress line to stderr, or nothing when *quiet*."""
    if quiet:
        return lambda _line: None
    console = stderr_console()
    return lambda line: console.print(line, markup=False)


@contextmanager
def progress_bar(title: str, *, quiet: bool, console: Console | None = None) -> Iterator[Callable[[str, float], None]]:
    """Show a bar on stderr from the first step that is told until the last one is done.

    Args:
        title: What is being done.
        quiet: Draw nothing; so it is as well when stderr is no terminal.
        console: Where to; stderr by default.

    Yields:
        A callback `(what, share)` with the present step and the share done, 0..1.
    """
    console = console or stderr_console()
    if quiet or not console.is_terminal:
        yield lambda _what, _share: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[what]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(title, total=1.0, what="")

    def told(what: str, share: float) -> None:
        # most runs find the model there and never call: then no bar appears at all
        bar.start()
        bar.update(task, completed=min(max(share, 0.0), 1.0), what=what)
        if share >= 1.0:
            bar.stop()

    try:
        yield told
    finally:
        bar.stop()
