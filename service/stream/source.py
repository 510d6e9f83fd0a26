"""What the stream needs of a source, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from service.stream.message import Message

__all__ = ["Backlog", "Source", "SourceFailed"]


class SourceFailed(Exception):  # noqa: N818 - says what happened
    """The source cannot be read at all; the text says what to mend."""


class Backlog(NamedTuple):
    """How far the source is ahead of what was read.

    Attributes:
        up: Whether the source answers.
        messages: Messages that wait; of files an estimate by the mean size of those that were read.
        behind: Parts of the source of which some wait; None while the source does not answer.
    """

    up: bool
    messages: float
    behind: frozenset[str] | None


class Source(Protocol):
    """Where messages come from."""

    def start(self, positions: Mapping[str, int], back_to_ns: int) -> None:
        """Begin to read.

        Args:
            positions: Where each part is read on from.
            back_to_ns: A part that has none is read from about this time on, or from where it begins.

        Raises:
            SourceFailed: If it cannot be read at all.
        """

    def poll(self, most: int, wait_seconds: float) -> list[Message]:
        """Return the next messages, none when nothing came in time."""

    def gone(self) -> Sequence[str]:
        """Return the parts that are no longer there, each once."""

    def backlog(self) -> Backlog:
        """Return how far the source is ahead."""

    def acknowledge(self, positions: Mapping[str, int]) -> None:
        """Tell the source how far messages are done; it may tell others, and nothing depends on it."""

    def close(self) -> None:
        """Let go of it."""
