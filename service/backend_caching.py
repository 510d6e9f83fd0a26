"""The model in process that remembers the tokens of the last texts."""

from __future__ import annotations

from typing import Any

from service import tokens
from service.backend import Encoded, OnnxBackend

__all__ = ["CachingBackend"]


class CachingBackend(OnnxBackend):
    """As `OnnxBackend`; what is kept and the backend hold each other, and go together.

    Args:
        arguments: Those of `OnnxBackend`.
        cache_texts: Most texts whose tokens are kept.
        named: As `arguments`.
    """

    def __init__(self, *arguments: Any, cache_texts: int, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._kept = tokens.keep(super().encode, cache_texts)
        self._cache_texts = cache_texts

    @property
    def token_cache(self) -> tuple[Any, int] | None:
        """Return what keeps the tokens of texts, with how many it may keep."""
        return self._kept, self._cache_texts

    def encode(self, text: str) -> Encoded:
        """Return the text as token ids, which may be those of an earlier call: nobody changes them."""
        return self._kept(text)
