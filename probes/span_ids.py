"""Span ids of stages: made of the request's span and the stage's name, the same in the service and in the exporter.

The service tells another process under which span its own belong, while the exporter, which sends that span, has not
seen the row yet.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Final

__all__ = ["stage_salt", "stage_span_id"]

_MASK: Final = 2**64 - 1


@functools.lru_cache(maxsize=256)
def stage_salt(stage: str) -> int:
    """Return 64 bits that depend on the stage's name alone, not on the order of declarations."""
    return int.from_bytes(hashlib.blake2b(stage.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def stage_span_id(root_span_id: int, salt: int) -> int:
    """Return the span id of a stage: the same each time, so that sending a row twice makes no second span.

    The mixing is the finaliser of splitmix64 (Steele, Lea, Flood 2014).

    Args:
        root_span_id: Span id of the request.
        salt: `stage_salt` of the stage's name.
    """
    mixed = (root_span_id ^ salt) & _MASK
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    # 0 is "no span" in W3C trace context.
    return (mixed ^ (mixed >> 31)) or 1
