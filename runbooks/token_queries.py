"""What triage asks Prometheus about the tokenizer, and the level at which its cache leaves what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from runbooks.evidence import Evidence, Series

__all__ = [
    "CACHED",
    "CACHE_BOUND",
    "CONCURRENT_LOADS",
    "LOAD_SECONDS",
    "TOKEN_QUERIES",
    "highest",
    "over_bound",
    "token_levels",
]

CACHED: Final = "model_tokenizer_cached_texts"
CACHE_BOUND: Final = "model_tokenizer_cache_bound_texts"
LOAD_SECONDS: Final = "model_tokenizer_load_seconds"
CONCURRENT_LOADS: Final = "model_tokenizer_concurrent_loads"

TOKEN_QUERIES: Final = (CACHED, CACHE_BOUND, LOAD_SECONDS, CONCURRENT_LOADS)


def highest(series: Iterable[Series]) -> Series | None:
    """Return the highest value of several series at each time at which one is known; None without any.

    Args:
        series: The series.
    """
    found: dict[float, float] = {}
    for one in series:
        for moment, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            found[moment] = max(found.get(moment, value), value)
    times = sorted(found)
    return Series({}, np.array(times), np.array([found[moment] for moment in times])) if found else None


def over_bound(evidence: Evidence) -> Series | None:
    """Return how many texts are kept over how many may be; None where none may be, or nobody tells."""
    kept, bound = (highest(evidence.get(query) or ()) for query in (CACHED, CACHE_BOUND))
    if kept is None or bound is None:
        return None
    times, mine, theirs = np.intersect1d(kept.times, bound.times, return_indices=True)
    allowed = bound.values[theirs]
    known = allowed > 0
    return Series({}, times[known], kept.values[mine][known] / allowed[known]) if known.any() else None


def token_levels(evidence: Evidence) -> Iterator[tuple[str, Series, float]]:
    """Yield name, values and smallest change that matters of what starts an incident of the tokenizer."""
    ratio = over_bound(evidence)
    if ratio is not None:
        # a cache with a bound reaches it and never passes it
        beyond = Series({}, ratio.times, (ratio.values > 1.0).astype(np.float64))
        yield "texts beyond the tokenizer's cache", beyond, 0.5
