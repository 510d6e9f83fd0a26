"""Behind `inferdeck deadletters`: requests that failed the contract, listed, shown and purged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inferdeck.errors import CannotRun
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings
from service.deadletters.letters import FOLDER, Kept, read_letters, remove_letters

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["letters_folder", "list_letters", "purge_letters", "show_letter"]

Done = TypeVar("Done")


def letters_folder(settings: StackSettings) -> Path:
    """Return where the service of this stack keeps them."""
    return settings.state_path / "service" / FOLDER


def _in_folder(folder: Path, work: Callable[[Path], Done]) -> Done:
    try:
        return work(folder)
    except OSError as error:
        raise CannotRun(f"cannot read {folder}: {error.strerror}", "mend its owner or mode") from error


def _read(settings: StackSettings) -> Kept:
    return _in_folder(letters_folder(settings), read_letters)


def list_letters(settings: StackSettings, count: int) -> Outcome:
    """List the newest dead letters.

    Args:
        settings: Where the state folder is.
        count: How many.

    Raises:
        CannotRun: If the folder cannot be read.
    """
    kept = _read(settings)
    newest = sorted(kept.letters, key=lambda one: str(one.get("at")), reverse=True)[:count]
    by_reason = Counter(str(one.get("reason")) for one in kept.letters)
    payload = {
        "folder": str(letters_folder(settings)),
        "kept": len(kept.letters),
        "size_bytes": kept.size_bytes,
        "lost": kept.lost,
        "unreadable": kept.unreadable,
        "by_reason": dict(by_reason.most_common()),
        "letters": newest,
    }

    def show(console: Console) -> None:
        for one in newest:
            console.print(_line(one), markup=False, highlight=False)
        told = ", ".join(f"{reason} {number}" for reason, number in by_reason.most_common())
        console.print(f"{len(kept.letters)} dead letters, {kept.size_bytes} bytes; {told or 'none'}", markup=False)
        if kept.lost or kept.unreadable:
            console.print(f"{kept.lost} could not be written, {kept.unreadable} lines cannot be read", markup=False)

    return Outcome(payload, 0, show)


def _line(letter: Mapping[str, Any]) -> str:
    what = f"{letter.get('reason')} of {letter.get('field')}" if letter.get("field") else str(letter.get("reason"))
    # A shape may hold line ends and marks that a terminal obeys.
    text = "".join(one if one.isprintable() else "·" for one in str(letter.get("text") or ""))
    return f"{letter['id']}  {letter.get('at')}  {letter.get('status')} {what:28.28} {text[:60]}"


def show_letter(settings: StackSettings, letter_id: str) -> Outcome:
    """Show a dead letter.

    Args:
        settings: Where the state folder is.
        letter_id: Its id; the beginning of one will do when it is the only one.

    Raises:
        CannotRun: If there is none, or several begin so.
    """
    fitting = [one for one in _read(settings).letters if str(one["id"]).startswith(letter_id)]
    if len(fitting) != 1:
        found = "no dead letter begins" if not fitting else f"{len(fitting)} dead letters begin"
        raise CannotRun(f"{found} with {letter_id!r}", "see `inferdeck deadletters`")
    letter = fitting[0]

    def show(console: Console) -> None:
        for name, value in letter.items():
            console.print(f"{name:12} {value!r}" if name == "text" else f"{name:12} {value}", markup=False)

    return Outcome({"letter": letter}, 0, show)


def purge_letters(settings: StackSettings) -> Outcome:
    """Remove all dead letters.

    Args:
        settings: Where the state folder is.

    Raises:
        CannotRun: If one cannot be removed.
    """
    removed = _in_folder(letters_folder(settings), remove_letters)
    payload = {"folder": str(letters_folder(settings)), "purged_bytes": removed}
    return Outcome(payload, 0, lambda console: console.print(f"{removed} bytes of dead letters removed"))
