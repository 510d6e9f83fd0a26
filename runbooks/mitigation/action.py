"""What a mitigation does: a function or an argument list, never a shell; and what takes it back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Action", "ActionFailedError", "Done", "argv_action"]

# A program that hangs must not keep the lock, and with it every other mitigation.
ARGV_SECONDS: Final = 120.0
_MOST_OUTPUT: Final = 300


class ActionFailedError(Exception):
    """A mitigation could not be carried out; the text is one line with the mend."""


@dataclass(frozen=True)
class Done:
    """What was done.

    Attributes:
        detail: One sentence.
        memo: What `undo` needs to know; JSON values.
    """

    detail: str
    memo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Action:
    """One mitigation by its id, as pages name it.

    Attributes:
        id: The same in page, setting and journal.
        about: What it does, in one sentence, for `--list` and `--dry-run`.
        run: Does it; raises ActionFailedError.
        undo: Takes it back, given the memo, and says so; None when nothing can.
    """

    id: str
    about: str
    run: Callable[[], Done]
    undo: Callable[[Mapping[str, Any]], str] | None = None


def argv_action(action_id: str, about: str, argv: Sequence[str], undo_argv: Sequence[str] | None = None) -> Action:
    """Return an action that runs a program.

    Args:
        action_id: Its id.
        about: One sentence.
        argv: Program and arguments.
        undo_argv: What takes it back; None when nothing can.
    """
    taken_back = None if undo_argv is None else lambda _memo: _call(undo_argv).detail
    return Action(action_id, about, lambda: _call(argv), taken_back)


def _call(argv: Sequence[str]) -> Done:
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ARGV_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ActionFailedError(f"{argv[0]} cannot be run: {error}") from error
    said = " ".join((done.stdout or done.stderr).split())[:_MOST_OUTPUT]
    if done.returncode:
        raise ActionFailedError(f"{argv[0]} ended with {done.returncode}: {said}")
    return Done(f"{argv[0]} ended well{f': {said}' if said else ''}")
