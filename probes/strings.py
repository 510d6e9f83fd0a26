"""The writer's string table: texts that repeat (routes, labels, releases) become numbers.

Bounded twice: the table holds 4,096 texts of 63 bytes, and every column may bring 256 distinct ones; what comes later
is stored as "(other)" and counted, so that an id used as a label cannot fill the table for everybody else.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable
from typing import Final

from probes.layout import STRING_BYTES, STRING_ENTRIES

__all__ = ["FIELD_BUDGET", "OTHER", "Field", "StringTable", "encode_text"]

FIELD_BUDGET: Final = 256
OTHER: Final = "(other)"


def encode_text(text: str, limit: int = STRING_BYTES - 1) -> bytes:
    """Return *text* as UTF-8 of at most *limit* bytes, cut between characters; lone surrogates become question marks.

    Args:
        text: Any string.
        limit: Most bytes to return.
    """
    data = text[:limit].encode("utf-8", "replace")
    return data if len(data) <= limit else data[:limit].decode("utf-8", "ignore").encode()


class StringTable:
    """The string table of one file, as its writer sees it."""

    def __init__(
        self,
        buffer: mmap.mmap,
        offset: int,
        count: Callable[[str], None],
        entries: int = STRING_ENTRIES,
        lock: threading.RLock | None = None,
    ) -> None:
        self.count = count
        self._buffer = buffer
        self._offset = offset
        self._entries = entries
        self._lock = lock or threading.RLock()
        self._ids: dict[bytes, int] = {b"": 0}  # bounded by the table
        self.other = self.add(OTHER)

    def add(self, text: str) -> int:
        """Return the id of *text*, storing it if it is new; the id of "(other)" when the table is full.

        Args:
            text: Any string; cut to 63 bytes. The empty one is id 0, which means absent.
        """
        data = encode_text(text)
        with self._lock:
            known = self._ids.get(data)
            if known is not None:
                return known
            number = len(self._ids)
            if number >= self._entries:
                self.count("string_table_full")
                return self.other
            at = self._offset + number * STRING_BYTES
            # The length comes last: a reader takes a length of 0 as the end of the table.
            self._buffer[at + 1 : at + 1 + len(data)] = data
            self._buffer[at] = len(data)
            self._ids[data] = number
            return number


class Field(dict[str, int]):
    """The texts that one column has used, with its budget; looking up a new text stores it."""

    def __init__(self, table: StringTable, budget: int = FIELD_BUDGET) -> None:
        super().__init__()
        self._table = table
        self._budget = budget

    def __missing__(self, text: object) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a text column cannot hold {type(text).__name__}")
        # What the table cuts off must not be kept here either: a key could be megabytes.
        text = text[: STRING_BYTES - 1]
        known = self.get(text)
        if known is not None:
            return known
        if len(self) >= self._budget:
            self._table.count("string_budget")
            return self._table.other
        number = self[text] = self._table.add(text)
        return number
