"""What every source of evidence raises when it has none; apart, so that a look-up in rows loads no HTTP client."""

from __future__ import annotations

__all__ = ["SourceMissingError"]


class SourceMissingError(Exception):
    """A source that could not be read; the text is one line for people."""
