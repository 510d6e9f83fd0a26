"""Takes words out of kept texts: JSON files as a whole, logs in place, since a process may be writing to them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inferdeck.stack.state import write_private

__all__ = ["erased", "in_json", "in_log"]

GONE = "(erased)"
# logs are cut at 4 MiB and reports are about 20 kB: a larger file is not ours, and is told instead of read
MOST_BYTES = 64 * 1024 * 1024


def erased(value: Any, words: Sequence[str], least_searched: int) -> tuple[Any, int]:
    """Return a JSON value without the words, and how many texts were changed.

    Args:
        value: JSON value; keys are looked at as well.
        words: Texts to take out.
        least_searched: Words shorter than this go only where they are the whole text.
    """
    if isinstance(value, dict):
        pairs = [(erased(key, words, least_searched), erased(one, words, least_searched)) for key, one in value.items()]
        return {key: one for (key, _), (one, _) in pairs}, sum(keys + ones for (_, keys), (_, ones) in pairs)
    if isinstance(value, list):
        found = [erased(one, words, least_searched) for one in value]
        return [one for one, _ in found], sum(count for _, count in found)
    if not isinstance(value, str):
        return value, 0
    # the short digest of reports is searched for as well: its prefix makes it no word that occurs by chance
    if value in words:
        return GONE, 1
    changed = value
    for word in words:
        if len(word) >= least_searched or word.startswith("sha256:"):
            changed = changed.replace(word, GONE)
    return changed, int(changed != value)


def in_json(path: Path, words: Sequence[str], least_searched: int) -> int:
    """Erase words in a JSON file, replaced as a whole, and return how many texts were changed.

    Raises:
        OSError: If it cannot be read or written.
        ValueError: If it is no JSON or too large.
    """
    if path.is_symlink():
        raise ValueError("a link is not followed")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    value, count = erased(json.loads(path.read_bytes()), words, least_searched)
    # untouched files keep their bytes and times
    if count:
        write_private(path, json.dumps(value, indent=1, ensure_ascii=False))
    return count


def in_log(path: Path, words: Sequence[str], least_searched: int) -> int:
    """Overwrite words in a text file with x, in place and of the same length, and return how often they were there.

    A process that appends to it meanwhile is not disturbed.

    Raises:
        OSError: If it cannot be read or written.
        ValueError: If it is too large.
    """
    needles = [word.encode("utf-8", "surrogateescape") for word in words if len(word) >= least_searched]
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
