"""Progress is seen on a terminal alone, and only when there is any."""

from __future__ import annotations

import io

from rich.console import Console

from inferdeck.terminal import progress_bar, sayer


def terminal() -> Console:
    """Return a console that takes itself for a terminal."""
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def written(console: Console) -> str:
    """Return what was drawn."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_bar_appears_with_its_first_step() -> None:
    """Title and step are drawn, and the bar goes when all is done."""
    console = terminal()

    with progress_bar("training", quiet=False, console=console) as progress:
        progress("reading", 0.2)
        progress("done", 1.0)
        drawn = written(console)

    assert "training" in drawn
    assert "done" in drawn


def test_without_a_step_nothing_is_drawn() -> None:
    """A model that is there needs no bar."""
    console = terminal()

    with progress_bar("training", quiet=False, console=console):
        pass

    assert "training" not in written(console)


def test_quiet_and_pipes_draw_nothing() -> None:
    """Logs are no place for bars."""
    for console, quiet in ((terminal(), True), (Console(file=io.StringIO()), False)):
        with progress_bar("training", quiet=quiet, console=console) as progress:
            progress("reading", 0.5)

        assert "" == written(console)
    sayer(quiet=True)("unseen")
