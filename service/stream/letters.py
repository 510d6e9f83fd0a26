"""Where dead letters and complete windows go: a folder, as those of the service do, and topics where there is Kafka.

A letter never holds the text itself but its shape (service/deadletters/letters.py), and no session. Its id follows from
the message's place in the source, so that one that was sent again after a kill is known as the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from service.deadletters.journal import Journal
from service.deadletters.letters import FOLDER, NAME, Failure, letter_of
from service.stream.process import Letter
from service.stream.windows import Window

__all__ = ["FolderSink", "Sink", "SinkFailed", "document_of"]

# As the service answers HTTP requests with the same fault.
_STATUS: Final = {"too_large": 413, "not_json": 400, "schema": 400, "late": 422, "future": 422}


class SinkFailed(Exception):  # noqa: N818 - says what happened
    """Letters or windows cannot be handed over now."""


class Sink(Protocol):
    """Takes what a batch comes to, before its messages count as done."""

    def deliver(self, letters: Sequence[Letter], windows: Sequence[Window]) -> None:
        """Hand over; what was handed over before a kill may come again.

        Raises:
            SinkFailed: If not all of it was taken.
        """

    def close(self) -> None:
        """Let go of what is held."""


def document_of(letter: Letter) -> dict[str, Any]:
    """Return what is kept of a dead letter."""
    message, context = letter.message, letter.context
    trace = f"{context.trace_id:032x}" if context.trace_id else ""
    # one that is too large is not looked at
    body = b"" if letter.reason == "too_large" else message.value or b""
    failure = Failure("stream", _STATUS[letter.reason], letter.reason, letter.field, trace, body)
    return letter_of(failure, "shape", "1") | {
        "id": letter.id,
        "body_bytes": message.size,
        "partition": message.partition,
        "next_position": message.position,
    }


class FolderSink:
    """Writes letters below a folder, where `inferdeck deadletters` finds them; windows stay in the state.

    Args:
        folder: The service's own folder; None to keep no letters.
        total_bytes: Most bytes of all letters; the oldest go first.
    """

    def __init__(self, folder: Path | None, total_bytes: int = 16 << 20) -> None:
        self._journal = None if folder is None else Journal(folder / FOLDER, NAME, total_bytes=total_bytes)

    def deliver(self, letters: Sequence[Letter], windows: Sequence[Window]) -> None:
        """Write the letters; a disk without room is waited for, since a letter is all that is left of its message."""
        del windows
        if self._journal is None:
            return
        for letter in letters:
            if not self._journal.write(document_of(letter)):
                raise SinkFailed("a dead letter cannot be written")

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
