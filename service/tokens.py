"""How the tokenizer is loaded, and for how many texts its tokens are kept; both as its probe measures them.

Tokens are kept by text, so a text stays in memory for as long as its entry: off unless a setting wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from probes.tokenizing import CacheReading, Loads, read_cache

__all__ = ["LOADS", "SupportsTokenCache", "TokensView", "keep", "load_tokenizer", "look"]

LOADS = Loads()
"""Of this process: the model's tokenizer, the canary's, and those that a plugin loads by `load_tokenizer`."""

Found = TypeVar("Found")


@runtime_checkable
class SupportsTokenCache(Protocol):
    """A backend that may keep the tokens of texts."""

    @property
    def token_cache(self) -> tuple[Any, int] | None:
        """Return what keeps them, with how many it may keep; None where none are kept."""


@dataclass(frozen=True)
class TokensView:
    """What the metrics show.

    Attributes:
        bound: Texts whose tokens may be kept, by the settings; 0: none.
        cache: What is kept; None where nothing is.
        quickest_seconds: Of the last loads of a tokenizer; None before the first has ended.
        slowest_seconds: As above.
        together: Most of these loads that ran at one time.
    """

    bound: int = 0
    cache: CacheReading | None = None
    quickest_seconds: float | None = None
    slowest_seconds: float | None = None
    together: int = 0


def read_tokenizer(path: Path) -> Any:
    """Return the `tokenizers.Tokenizer` of a file."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))


def load_tokenizer(path: Path, loads: Loads = LOADS) -> Any:
    """Return the `tokenizers.Tokenizer` of a file, and take note of how long that took and of the loads beside it.

    Args:
        path: The file.
        loads: Gets the reading.
    """
    with loads.timed():
        return read_tokenizer(path)


def keep(encode: Callable[[str], Found], entries: int) -> Callable[[str], Found]:
    """Return *encode* that remembers its last answers.

    Args:
        encode: Returns the tokens of a text.
        entries: Most texts to remember; the one that was not asked for longest goes first.
    """
    return lru_cache(entries)(encode)


def look(backend: object, loads: Loads = LOADS) -> TokensView:
    """Return what the metrics show of a backend's tokens.

    Args:
        backend: The model, or None before there is one.
        loads: Loads of this process.
    """
    kept = backend.token_cache if isinstance(backend, SupportsTokenCache) else None
    bound, cache = (0, None) if kept is None else (kept[1], read_cache(kept[0]))
    ended = loads.ended
    seconds = [one.seconds for one in ended if one.seconds is not None]
    together = max((one.beside + 1 for one in ended), default=0)
    return TokensView(bound, cache, min(seconds, default=None), max(seconds, default=None), together)
