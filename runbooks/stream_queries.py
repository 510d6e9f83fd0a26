"""What triage asks Prometheus about the stream of user queries, and the level at which it leaves what is usual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runbooks.evidence import Evidence, Series

__all__ = ["LAG", "MESSAGES", "STANDS", "STREAM_QUERIES", "WAITING", "WINDOWS", "stream_levels"]

LAG: Final = "stream_lag_seconds"
WAITING: Final = "stream_waiting_messages"
MESSAGES: Final = "stream_messages_total"
WINDOWS: Final = "stream_windows_total"
STANDS: Final = "stream_stands_state"

STREAM_QUERIES: Final = (LAG, WAITING, MESSAGES, WINDOWS, STANDS)

# A reader that keeps up is a batch behind, well under a second; half of what alerts/catalogue/stream_lag.yaml allows.
_EFFECT_SECONDS: Final = 15.0


def stream_levels(evidence: Evidence) -> Iterator[tuple[str, tuple[Series, ...], float]]:
    """Yield name, series and smallest effect of what tells when a stream fell behind."""
    lag = evidence.get(LAG)
    if lag:
        yield "the stream is behind", lag, _EFFECT_SECONDS
