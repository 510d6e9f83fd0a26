"""Takes words out of kept texts: JSON files as a whole, logs in place, since a process may be writing to them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferdeck.stack.state import write_private

__all__ = ["Words", "erased", "in_json", "in_log", "words_of"]

GONE = "(erased)"
# logs are cut at 4 MiB and reports are about 20 kB: a larger file is not ours, and is told instead of read
MOST_BYTES = 64 * 1024 * 1024
# keys under which a session stands, in reports, traces and bundles
SESSION_FIELDS = frozenset({"session", "session_id", "session.id"})
# the recorder keeps ids of 16 to 32 characters as they came; shorter ones may still stand in a text of others
LEAST_IN_TEXTS = 8
LEAST_IN_LOGS = 16
# an id that reads like a name of ours (event_loop_blocked, p95_seconds, EventLoopBlocked) would take that name out of
# every report; generated ids mix cases and digits
_PART = r"(?:[a-z]+|[a-z]{1,3}[0-9]{1,3}|[0-9]{1,2})"
_NAME = re.compile(rf"{_PART}(?:[-_.]{_PART})*|(?:[A-Z][a-z]{{2,}})+")


@dataclass(frozen=True)
class Words:
    """What is taken out of which part of a file.

    Attributes:
        fields: Go where they are the whole value of a session field.
        tokens: Go from every value as whole tokens, and never from keys.
        logs: Go from logs, which have no fields.
    """

    fields: tuple[str, ...]
    tokens: tuple[str, ...]
    logs: tuple[str, ...]


def words_of(session_id: str | None, marks: Sequence[str]) -> Words:
    """Return what to take out for a session.

    Args:
        session_id: As it came; None when only its hash is known.
        marks: The hashes and the digest that stand for it: no words that occur by chance.
    """
    told = (session_id,) if session_id else ()
    searched = tuple(
        one for one in told if len(one) >= LEAST_IN_TEXTS and not _NAME.fullmatch(one.lower() if one.isupper() else one)
    )
    tokens = (*marks, *searched)
    return Words((*marks, *told), tokens, tuple(one for one in tokens if len(one) >= LEAST_IN_LOGS))


def erased(value: Any, words: Words, key: str = "") -> tuple[Any, int]:
    """Return a JSON value without the words, and how many texts were changed.

    Args:
        value: JSON value; its keys stay as they are.
        words: What to take out.
        key: The key that the value stands under.
    """
    if isinstance(value, dict):
        pairs = {name: erased(one, words, name) for name, one in value.items()}
        return {name: one for name, (one, _) in pairs.items()}, sum(count for _, count in pairs.values())
    if isinstance(value, list):
        found = [erased(one, words, key) for one in value]
        return [one for one, _ in found], sum(count for _, count in found)
    if not isinstance(value, str):
        return value, 0
    if value in words.tokens or (key in SESSION_FIELDS and value in words.fields):
        return GONE, 1
    changed = value
    for word in words.tokens:
        # the cheap look first: most texts hold none of them
        if word in changed:
            changed = re.sub(rf"(?<![A-Za-z0-9_-]){re.escape(word)}(?![A-Za-z0-9_-])", GONE, changed)
    return changed, int(changed != value)


def in_json(path: Path, words: Words) -> int:
    """Erase words in a JSON file, replaced as a whole, and return how many texts were changed.

    Raises:
        OSError: If it cannot be read or written.
        ValueError: If it is no JSON or too large.
    """
    if path.is_symlink():
        raise ValueError("a link is not followed")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    value, count = erased(json.loads(path.read_bytes()), words)
    # untouched files keep their bytes and times
    if count:
        write_private(path, json.dumps(value, indent=1, ensure_ascii=False))
    return count


def in_log(path: Path, words: Words) -> int:
    """Overwrite words in a text file with x, in place and of the same length, and return how often they were there.

    A process that appends to it meanwhile is not disturbed.

    Raises:
        OSError: If it cannot be read or written.
        ValueError: If it is too large.
    """
    needles = [word.encode("utf-8", "surrogateescape") for word in words.logs]
    count = 0
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if os.fstat(fd).st_size > MOST_BYTES:
            raise ValueError(f"larger than {MOST_BYTES} bytes")
        with os.fdopen(os.dup(fd), "rb") as file:
            text = file.read(MOST_BYTES)
        for needle in needles:
            at = text.find(needle)
            while at >= 0:
                os.pwrite(fd, b"x" * len(needle), at)
                count += 1
                at = text.find(needle, at + len(needle))
    finally:
        os.close(fd)
    return count
